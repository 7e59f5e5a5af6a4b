/* Programs that wait for a known reason. The first argument says for which. */
#include "tasks.h"
#include <stdio.h>
#include <string.h>

/* The victim sleeps for milliseconds on CPU 1, where a task of higher priority computes for 200 ms of each 500.
 * After 100 ms of these, another moves it to CPU 0, and back in the end. Prints the PID of the victim. */
static void moved(void)
{
	int victim = begin("victim", 1, 0);

	if (!victim)
		for (;;)
			usleep(1000);
	printf("%d\n", victim);
	fflush(stdout);
	long long at = now() + 100000000;

	if (!begin("hog", 1, 40))
		for (;; at += 500000000) {
			sleep_until(at);
			compute(200000000);
		}
	run_on(0, 0);
	for (;; at += 500000000) {
		sleep_until(at + 100000000);
		run_on(victim, 0);
		sleep_until(at + 400000000);
		run_on(victim, 1);
	}
}

/* A loop of 5 ms, and a task beside it that uses up the quota of both. */
static void capped(void)
{
	run_on(0, 0);
	if (!begin("burner", 0, 0))
		for (;;)
			;
	for (long long at = now();; at += 5000000) {
		sleep_until(at);
		compute(100000);
		if (now() > at + 5000000)
			at = now();
	}
}

/* A loop of 1 ms that is never long. */
static void loop(void)
{
	for (long long at = now();; at += 1000000)
		sleep_until(at);
}

int main(int count, char **arguments)
{
	const char *reason = count > 1 ? arguments[1] : "";

	if (!strcmp(reason, "moved"))
		moved();
	if (!strcmp(reason, "capped"))
		capped();
	if (!strcmp(reason, "loop"))
		loop();
	return 1;
}
