/*
 * Tells latlab adapt which devices this thread waits for, until it ends:
 *
 *	cc -O2 -o groups examples/groups.c $(pkg-config --cflags --libs latlab-period) && ./groups AUDIO,NETWORK
 */
#include <latlab-period.h>
#include <stdio.h>

int main(int argc, char **argv)
{
	const char *refused = latlab_prioritize(argc > 1 ? argv[1] : "");

	if (refused) {
		perror(refused);
		return 1;
	}
	/* The thread does its work here. */
	latlab_prioritize("");
	return 0;
}
