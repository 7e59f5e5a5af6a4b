/* A real-time program in C++ whose templates use those of the standard library: in each tenth cycle it
 * allocates by std::vector and std::map, and in each it takes a std::mutex, which an ordinary thread holds
 * most of the time. */
#include <map>
#include <mutex>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
#include <vector>

static sem_t held;

template <typename Value>
class Table {
	std::mutex mutex;
	std::map<int, std::vector<Value>> rows;

public:
	void lock_it()
	{
		const std::lock_guard<std::mutex> guard(mutex); /* mark: lock */
	}

	void hold_it()
	{
		const std::lock_guard<std::mutex> guard(mutex);

		sem_post(&held);
		usleep(5000);
	}

	void fill(int number)
	{
		rows[number].push_back(Value()); /* mark: fill */
	}
};

/* Too large for the heap. */
struct State {
	char bytes[1 << 20] = {};
};

static Table<State> table;

static void *hold(void *unused)
{
	for (;;) {
		table.hold_it();
		usleep(1000);
	}
	return unused;
}

int main()
{
	struct sched_param priority = { 60 };
	struct timespec time;
	pthread_t thread;

	mlockall(MCL_CURRENT | MCL_FUTURE);
	sem_init(&held, 0, 0);
	pthread_create(&thread, nullptr, hold, nullptr);
	sem_wait(&held);
	if (sched_setscheduler(0, SCHED_FIFO, &priority))
		return 9;
	clock_gettime(CLOCK_MONOTONIC, &time);
	for (int cycle = 0; cycle < 200; cycle++) {
		time.tv_nsec += 2000000;
		if (time.tv_nsec >= 1000000000) {
			time.tv_nsec -= 1000000000;
			time.tv_sec++;
		}
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, nullptr);
		table.lock_it();
		if (cycle % 10 == 0)
			table.fill(cycle);
	}
	_exit(0);
}
