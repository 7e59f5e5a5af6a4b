/* How long a copy to a port takes: docs/results/laboratory.md. */
#include <stdio.h>
#include <sys/io.h>
#include <time.h>
static unsigned short words[65536];
int main(void) {
    if (ioperm(0x80, 2, 1)) return 1;
    for (int n = 256; n <= 65536; n *= 16) {
        struct timespec begin, end;
        void *from = words;
        unsigned long left = n;
        clock_gettime(CLOCK_MONOTONIC, &begin);
        __asm__ volatile("rep outsw" : "+S"(from), "+c"(left) : "d"(0x80) : "memory");
        clock_gettime(CLOCK_MONOTONIC, &end);
        printf("%d words: %ld ns\n", n, (end.tv_sec - begin.tv_sec) * 1000000000L + end.tv_nsec - begin.tv_nsec);
    }
}
