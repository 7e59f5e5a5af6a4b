/*
 * A program with marks for latlab scan, which measures how late an interrupt
 * wakes a task while this program reads a megabyte of zeros.
 *
 *	cc -O2 -o window examples/window.c && latlab scan -- ./window
 */
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

static char zeros[1 << 20];

static void mark(const char *what)
{
	const char *scan = getenv("LATLAB_SCAN");

	/* Without latlab scan there are no marks. */
	if (scan && write(atoi(scan), what, 1) != 1)
		exit(1);
}

int main(void)
{
	int fd = open("/dev/zero", O_RDONLY);

	for (int i = 0; i < 100; i++) {
		mark("b");
		if (read(fd, zeros, sizeof(zeros)) < 0)
			return 1;
		mark("e");
	}
	return 0;
}
