/* A loop with the shape of an audio or robot framework: the framework has a thread of its own, and
 * calls the program once in each period. The argument is the number of cycles (1000).
 *
 *   cc -O2 -pthread callback.c $(pkg-config --cflags --libs latlab-period) -o callback
 */
#include <inttypes.h>
#include <latlab-period.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

/* The framework. */

typedef int (*process_callback)(int64_t missed, void *data);

struct client {
	pthread_t thread;
	process_callback process;	/* ends the loop by another value than 0 */
	void *data;
	const char *failed;		/* why the thread could not start */
	struct latlab_period_summary summary;
};

static void *run(void *argument)
{
	struct client *client = argument;
	struct latlab_period_settings settings = {
		.period_ns = 1000000,
		.name = "callback",
		.policy = LATLAB_FIFO,
		.priority = 70,
	};
	/* The policy, the touched stack and the loop belong to the thread that starts them. */
	struct latlab_period *period = latlab_period_start(&settings);
	int64_t missed;

	if (!period) {
		client->failed = settings.failed;
		return 0;
	}
	do
		missed = latlab_period_wait(period);
	while (missed >= 0 && client->process(missed, client->data) == 0);
	latlab_period_summary(period, &client->summary);
	latlab_period_end(period);
	return 0;
}

/* The program. */

struct levels {
	long cycles;
	double level;
};

static int process(int64_t missed, void *data)
{
	struct levels *levels = data;

	(void)missed;
	levels->level = levels->level * 0.9 + 0.1;
	return --levels->cycles <= 0;
}

int main(int argc, char **argv)
{
	struct levels levels = { .cycles = argc > 1 ? atol(argv[1]) : 1000 };
	struct client client = { .process = process, .data = &levels };

	if (pthread_create(&client.thread, 0, run, &client) || pthread_join(client.thread, 0))
		return 1;
	if (client.failed) {
		fprintf(stderr, "%s\n", client.failed);
		return 1;
	}
	printf("%" PRIu64 " cycles, %" PRIu64 " overruns, %" PRIu64 " missed, at most %" PRIu64 " ns late\n",
	       client.summary.cycles, client.summary.overruns, client.summary.missed,
	       client.summary.lateness_max_ns);
	return 0;
}
