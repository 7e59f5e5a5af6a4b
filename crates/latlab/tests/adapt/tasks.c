/* Starts N processes, one after another, that become real-time tasks of FIFO 80 and end.
 * `tasks wait N`: each waits three times for the RTC before it ends. `tasks come N`: none waits. */
#include <fcntl.h>
#include <linux/rtc.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

static int be(int waits)
{
	struct sched_param param = { .sched_priority = 80 };
	unsigned long data;

	if (sched_setscheduler(0, SCHED_FIFO, &param))
		return 1;
	if (!waits)
		return 0;
	int rtc = open("/dev/rtc0", O_RDONLY);

	if (rtc < 0 || ioctl(rtc, RTC_IRQP_SET, 256) || ioctl(rtc, RTC_PIE_ON, 0))
		return 1;
	for (int n = 0; n < 3; n++)
		if (read(rtc, &data, sizeof(data)) != sizeof(data))
			return 1;
	/* The timer softirq that woke the task may not have ended. With one CPU, close() would spin forever. */
	return usleep(500);
}

int main(int count, char **words)
{
	int status, waits = count == 3 && !strcmp(words[1], "wait");

	for (int n = count == 3 ? atoi(words[2]) : 0; n > 0; n--) {
		pid_t task = fork();

		if (!task)
			_exit(be(waits));
		if (task < 0 || waitpid(task, &status, 0) != task || status) {
			fprintf(stderr, "tasks: the one before %d others failed\n", n - 1);
			return 1;
		}
	}
	puts("done");
	return 0;
}
