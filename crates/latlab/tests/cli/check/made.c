/* A loop of 1 ms that calls a function through code that it makes while it runs. With "map" it writes a perf map
 * for that code. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

/* Calls the function in its first argument, with a frame pointer. */
static const unsigned char CODE[] = {
#ifdef __x86_64__
	0x55, 0x48, 0x89, 0xe5, 0xff, 0xd7, 0x5d, 0xc3,
#else
	0xfd, 0x7b, 0xbf, 0xa9, 0xfd, 0x03, 0x00, 0x91, 0x00, 0x00, 0x3f, 0xd6,
	0xfd, 0x7b, 0xc1, 0xa8, 0xc0, 0x03, 0x5f, 0xd6,
#endif
};

static int null;

static void log_state(void)
{
	if (write(null, "state", 5) != 5)
		_exit(1);
}

int main(int count, char **words)
{
	char name[64] = "";
	struct timespec next;
	void *code = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	memcpy(code, CODE, sizeof(CODE));
	__builtin___clear_cache(code, (char *)code + sizeof(CODE));
	mprotect(code, 4096, PROT_READ | PROT_EXEC);
	if (count > 1 && !strcmp(words[1], "map")) {
		FILE *map;

		snprintf(name, sizeof(name), "/tmp/perf-%d.map", getpid());
		map = fopen(name, "w");
		fprintf(map, "%lx %zx py::Loop.update:/home/me/loop.py\n", (long)code, sizeof(CODE));
		fclose(map);
	}
	null = open("/tmp", O_TMPFILE | O_WRONLY, 0600);
	mlockall(MCL_CURRENT | MCL_FUTURE);
	clock_gettime(CLOCK_MONOTONIC, &next);
	for (int i = 0; i < 200; i++) {
		next.tv_nsec += 1000000;
		if (next.tv_nsec >= 1000000000) {
			next.tv_nsec -= 1000000000;
			next.tv_sec++;
		}
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &next, 0);
		((void (*)(void (*)(void)))code)(log_state);
	}
	if (*name)
		unlink(name);
	return 0;
}
