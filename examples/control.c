/* A control loop of 1 kHz: each cycle reads a sensor and sets an actuator, both simulated.
 * The argument is the number of cycles (1000).
 *
 *   cc -O2 control.c $(pkg-config --cflags --libs latlab-period) -o control
 *   ./control 60000 & latlab watch $!
 *   latlab check -- ./control
 */
#include <inttypes.h>
#include <latlab-mark.h>
#include <latlab-period.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
	struct latlab_period_settings settings = {
		.period_ns = 1000000,
		.name = "control",
		.policy = LATLAB_FIFO,
		.priority = 80,
	};
	struct latlab_period *period = latlab_period_start(&settings);
	struct latlab_period_summary summary;
	long cycles = argc > 1 ? atol(argv[1]) : 1000;
	double position = 0, force = 0;

	if (!period) {
		perror(settings.failed);
		return 1;
	}
	while (cycles-- > 0 && latlab_period_wait(period) >= 0) {
		latlab_begin("sensor", cycles);
		position += (force - position) / 100;
		latlab_end("sensor");
		latlab_begin("actuator", cycles);
		force += (1 - position) / 10;
		latlab_end("actuator");
	}
	latlab_period_summary(period, &summary);
	latlab_period_end(period);
	printf("%" PRIu64 " cycles, %" PRIu64 " overruns, %" PRIu64 " missed, at most %" PRIu64 " ns late\n",
	       summary.cycles, summary.overruns, summary.missed, summary.lateness_max_ns);
	return 0;
}
