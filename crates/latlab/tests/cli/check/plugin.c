/* A real-time program that loads a plugin while it runs. The plugin, compiled from the same file with PLUGIN
 * defined, writes to a file in each cycle. The first argument is the plugin. */
#include <dlfcn.h>
#include <sched.h>
#include <stdio.h>
#include <sys/mman.h>
#include <time.h>

#ifdef PLUGIN
void log_cycle(FILE *file)
{
	fprintf(file, "cycle\n");
	fflush(file); /* mark: plugin */
}
#else
int main(int argc, char **argv)
{
	struct timespec period = { 0, 2000000 };
	struct sched_param priority = { 60 };
	void (*log_cycle)(FILE *file) = 0;
	FILE *file = tmpfile();

	mlockall(MCL_CURRENT | MCL_FUTURE);
	if (argc < 2 || sched_setscheduler(0, SCHED_FIFO, &priority))
		return 9;
	/* The plugin is loaded after latlab has read what the process maps. */
	for (int i = 0; i < 1000; i++) {
		nanosleep(&period, 0);
		if (log_cycle)
			log_cycle(file);
		else if (i == 500 && !(log_cycle = dlsym(dlopen(argv[1], RTLD_NOW), "log_cycle")))
			return 8;
	}
	return 0;
}
#endif
