// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The longest sections of a run in which no thread can be scheduled, and its
 * interrupts, in the terms of de Oliveira et al. 2020. See README.md.
 */
#include <string.h>

#include "sections.h"

/* Roles of blocks, by the symbol at their address. */
enum {
	INTERRUPT = 'i',
	EXCEPTION = 'x',
	/* __schedule(). */
	SCHEDULER = 's',
	/* __switch_to_asm(), the context switch. */
	SWITCH = 'w',
	/* __cond_resched(), a scheduling point of kernels without preemption. */
	POINT = 'p',
	/* resched_curr(), which sets need_resched. */
	NEED = 'n',
	/* hrtimer_wakeup(), by which a timer wakes a thread. */
	EXPIRY = 't',
};

#define ROLES 512
static struct {
	uint64_t address;
	char role;
} roles[ROLES];
static size_t n_roles;
static uint64_t stubs_begin, stubs_end;

/* Where a section begins or ends: a block, and its callers. */
#define CALLERS 4
struct place {
	uint64_t at[CALLERS];
};

/*
 * Sections in which no thread can be scheduled. In a preemptible kernel they are
 * those with preemption or interrupts disabled; in others, all of the kernel
 * between two scheduling points. Their time is that of threads: it does not pass
 * in interrupts and while the CPU is halted.
 */
struct tracker {
	bool runs_on;
	bool closed;
	bool switched;
	uint64_t begin;
	struct place place;
	/* Length of the section before the CPU halted, which may delay the same wake-up. */
	uint64_t carried;
	/* When the section ended after which need_resched has to be honoured. */
	uint64_t opened;
	bool is_open_since;
	/* The longest of each kind so far. */
	uint64_t longest[3];
};
static struct tracker trackers[2] = { { .runs_on = false }, { .runs_on = true } };

/* Entries into the kernel that have not returned, since the last call of the scheduler. */
#define FRAMES 64
struct frame {
	bool is_interrupt;
	uint64_t address;
	uint64_t begin;
	/* Instructions of interrupts within it. */
	uint64_t inner;
	/* When interrupts were enabled before it. */
	uint64_t enabled;
	int64_t enabled_idle;
	bool irqs_off;
	int64_t preempt;
};
static struct frame frames[FRAMES];
static size_t depth, interrupts;

static int64_t preempt;
/* Its address, and what the current block added to it by way of a register. */
static uint64_t counter;
static int64_t added;
static bool irqs_off, in_user, need;
/* When interrupts were last enabled: instructions and idle time. */
static uint64_t enabled;
static int64_t enabled_idle, idle_time;
/* Instructions of interrupts so far: the time of threads stands still in them. */
static uint64_t paused;

/* The scheduler: from its call until preemption is enabled again. */
static bool scheduling, is_deciding;
static uint64_t scheduled;
static struct place scheduler;
/* When it last returned to a thread, and where. */
static uint64_t returned;
static struct place returned_at;
static bool has_returned;
static uint64_t longest_scheduling, longest_return;

static uint64_t clock_read_at, clock_read_thread;
/* The interrupt whose timer woke a thread. */
static struct frame expiry;
static bool has_expired;

/* Blocks with calls that have not returned. */
#define STACK 256
static uint64_t calls[STACK];
static size_t n_calls;

static bool records;
static FILE *out;

bool add_role(uint64_t address, char role)
{
	if (n_roles == ROLES)
		return false;
	roles[n_roles].address = address;
	roles[n_roles++].role = role;
	return true;
}

void set_stubs(uint64_t begin, uint64_t end)
{
	stubs_begin = begin;
	stubs_end = end;
}

char role_of(uint64_t address)
{
	if (address >= stubs_begin && address < stubs_end)
		return INTERRUPT;
	for (size_t i = 0; i < n_roles; i++)
		if (roles[i].address == address)
			return roles[i].role;
	return 0;
}

void write_sections_to(FILE *file)
{
	out = file;
}

static struct place place_of(const struct block *block)
{
	struct place place = { { block->address } };

	for (size_t i = 1; i < CALLERS && i <= n_calls; i++)
		place.at[i] = calls[(n_calls - i) % STACK];
	return place;
}

static void print_place(const struct place *place)
{
	for (size_t i = 0; i < CALLERS; i++)
		fprintf(out, "%c%lx", i ? ',' : ' ', place->at[i]);
}

/* Writes a section down if it is the longest of its kind. */
static void measure(const char *kind, uint64_t *longest, uint64_t length, const struct place *from,
		    const struct place *to)
{
	if (!records || length <= *longest)
		return;
	*longest = length;
	fprintf(out, "longest %s %lu", kind, length);
	print_place(from);
	print_place(to);
	fputc('\n', out);
}

/* The kinds of tracked sections, of preemptible and of other kernels. */
static const char *const kinds[2][3] = { { "poid", "st", "paie" },
					 { "poid-none", "st-none", "paie-none" } };

/* The section of a tracker ends; what follows can be interrupted after one more instruction. */
static void close_section(struct tracker *tracker, uint64_t thread, const struct place *at)
{
	size_t kind = tracker->switched;

	if (!tracker->closed)
		return;
	tracker->closed = false;
	measure(kinds[tracker->runs_on][kind], &tracker->longest[kind],
		tracker->carried + (thread - tracker->begin) + 1, &tracker->place, at);
	tracker->carried = 0;
	if (need && !tracker->is_open_since) {
		tracker->opened = thread;
		tracker->is_open_since = true;
	}
}

static void open_section(struct tracker *tracker, uint64_t thread, const struct place *at)
{
	if (tracker->closed)
		return;
	tracker->closed = true;
	tracker->switched = false;
	tracker->carried = 0;
	tracker->begin = thread;
	tracker->place = *at;
}

static bool is_preemptible(void)
{
	/* Bit 31 is the inverted need_resched (include/linux/preempt.h). */
	return !(preempt & 0x7fffffff) && !irqs_off;
}

/* Opens and closes sections after a change of the thread's state. */
static void update(const struct block *block, uint64_t now)
{
	uint64_t thread = now - paused;
	bool free = in_user || is_preemptible();
	struct place at;

	if (interrupts)
		return;
	if (scheduling && is_deciding) {
		if (!irqs_off)
			return;
		is_deciding = false;
	}
	if (scheduling && free) {
		at = place_of(block);
		scheduling = false;
		measure("psd", &longest_scheduling, thread - scheduled + 1, &scheduler, &at);
		returned = thread;
		returned_at = at;
		has_returned = true;
	}
	for (size_t i = 0; i < 2; i++) {
		bool closed = !(trackers[i].runs_on ? in_user : free);

		if (closed == trackers[i].closed)
			continue;
		at = place_of(block);
		if (closed)
			open_section(&trackers[i], thread, &at);
		else
			close_section(&trackers[i], thread, &at);
	}
}

static void set_interrupts(bool off, uint64_t now)
{
	if (irqs_off && !off) {
		enabled = now;
		enabled_idle = idle_time;
	}
	irqs_off = off;
}

static void push_frame(const struct block *block, bool is_interrupt, uint64_t now)
{
	struct frame *frame;

	if (depth == FRAMES)
		return;
	frame = &frames[depth++];
	*frame = (struct frame){ is_interrupt, block->address, now,	 0,	 enabled,
				 enabled_idle, irqs_off,       preempt };
	interrupts += is_interrupt;
	irqs_off = true;
}

/* Ends the last entry into the kernel. */
static void pop_frame(uint64_t now)
{
	struct frame *frame = &frames[--depth];
	uint64_t length = now - frame->begin;

	if (!frame->is_interrupt)
		return;
	interrupts--;
	for (size_t i = depth; interrupts && i--;) {
		if (frames[i].is_interrupt) {
			frames[i].inner += length;
			break;
		}
	}
	if (!interrupts)
		paused += length;
	if (records)
		fprintf(out, "interrupt %lu %lu %lu %lx\n", frame->begin + idle_time,
			now + idle_time, length - frame->inner, frame->address);
}

static void leave_kernel(uint64_t now)
{
	bool off = false;

	if (depth) {
		const struct frame *frame = &frames[depth - 1];

		off = frame->irqs_off;
		if (frame->is_interrupt)
			preempt = frame->preempt;
		pop_frame(now);
	}
	set_interrupts(off, now);
}

/* The scheduler is called; an interrupt that called it is over. */
static void begin_scheduler(const struct block *block, uint64_t now)
{
	struct place at = place_of(block);
	uint64_t thread;

	while (depth)
		pop_frame(now);
	in_user = false;
	thread = now - paused;
	for (size_t i = 0; i < 2; i++) {
		struct tracker *tracker = &trackers[i];

		if (need && tracker->is_open_since)
			measure(kinds[i][2], &tracker->longest[2], thread - tracker->opened, &at, &at);
		/* With interrupts disabled, what waits for them also waits for the switch. */
		if (!irqs_off)
			close_section(tracker, thread, &at);
		tracker->is_open_since = false;
	}
	need = false;
	scheduling = true;
	is_deciding = !irqs_off;
	scheduled = thread;
	scheduler = at;
}

static void note_need(uint64_t now)
{
	uint64_t begin = now;

	/* The scheduler clears what is set while it chooses a thread. */
	if (need || (scheduling && irqs_off && !interrupts))
		return;
	need = true;
	for (size_t i = depth; i--;)
		if (frames[i].is_interrupt)
			begin = frames[i].begin;
	for (size_t i = 0; i < 2; i++) {
		if (trackers[i].closed)
			continue;
		trackers[i].opened = begin - paused;
		trackers[i].is_open_since = true;
	}
}

/* The interrupt in which a timer expires; the outermost one, if it interrupted another. */
static void note_expiry(void)
{
	for (size_t i = 0; i < depth; i++) {
		if (frames[i].is_interrupt) {
			expiry = frames[i];
			has_expired = true;
			return;
		}
	}
}

static void pass_point(const struct block *block, uint64_t now)
{
	struct place at = place_of(block);
	struct tracker *tracker = &trackers[1];

	if (interrupts || scheduling || in_user || !is_preemptible())
		return;
	close_section(tracker, now - paused, &at);
	open_section(tracker, now - paused, &at);
}

static void begin_program(const struct block *block, uint64_t now)
{
	if (in_user && !interrupts)
		return;
	while (depth)
		pop_frame(now);
	if (records && preempt & 0x7fffffff)
		fprintf(out, "drift %ld\n", preempt & 0x7fffffff);
	in_user = true;
	n_calls = 0;
	preempt = 0;
	set_interrupts(false, now);
	update(block, now);
}

void learn_counter(uint64_t address)
{
	counter = address;
}

void note_addition(uint64_t address, int32_t by)
{
	if (address == counter)
		added += by;
}

static void count_additions(const struct block *block, uint64_t now)
{
	if (!added)
		return;
	preempt += added;
	added = 0;
	update(block, now);
}

void enter_block(const struct block *block, uint64_t now)
{
	if (!is_kernel(block->address)) {
		begin_program(block, now);
		return;
	}
	switch (block->role) {
	case INTERRUPT:
		push_frame(block, true, now);
		return;
	case EXCEPTION:
		push_frame(block, false, now);
		break;
	case SCHEDULER:
		begin_scheduler(block, now);
		break;
	case SWITCH:
		trackers[0].switched = trackers[1].switched = true;
		n_calls = 0;
		return;
	case POINT:
		pass_point(block, now);
		return;
	case NEED:
		note_need(now);
		return;
	case EXPIRY:
		note_expiry();
		return;
	default:
		if (!in_user)
			return;
	}
	if (!interrupts)
		in_user = false;
	update(block, now);
}

static void follow_events(const struct block *block, uint64_t executed, uint64_t now)
{
	for (size_t i = 0; i < block->events; i++) {
		const struct event *event = &block->event[i];
		uint64_t at = now + event->after;

		if (event->after > executed)
			return;
		switch (event->kind) {
		case CALL:
			calls[n_calls++ % STACK] = block->address;
			continue;
		case RETURN:
			n_calls -= n_calls > 0;
			continue;
		case LEAVE:
			leave_kernel(at);
			break;
		case INTERRUPTS_OFF:
			set_interrupts(true, at);
			break;
		case INTERRUPTS_ON:
		case RESTORE:
			set_interrupts(false, at);
			break;
		case PREEMPT:
			preempt += event->by;
			break;
		}
		update(block, at);
	}
}

void leave_block(const struct block *block, uint64_t executed, uint64_t now)
{
	/* Sections that begin, begin with the block; those that end, end with it. */
	if (added > 0)
		count_additions(block, now);
	follow_events(block, executed, now);
	count_additions(block, now + executed);
}

void halt_cpu(const struct block *block, uint64_t now)
{
	struct place at = place_of(block);

	if (interrupts)
		return;
	scheduling = false;
	for (size_t i = 0; i < 2; i++) {
		struct tracker *tracker = &trackers[i];
		uint64_t length = now - paused - tracker->begin;

		if (!tracker->closed)
			continue;
		close_section(tracker, now - paused, &at);
		open_section(tracker, now - paused, &at);
		tracker->carried = length;
	}
}

void read_clock(uint64_t now)
{
	clock_read_at = now;
	clock_read_thread = now - paused;
}

void set_idle(int64_t idle)
{
	idle_time = idle;
}

void begin_sections(void)
{
	for (size_t i = 0; i < 2; i++)
		memset(trackers[i].longest, 0, sizeof(trackers[i].longest));
	longest_scheduling = longest_return = 0;
	records = true;
	fputs("begin\n", out);
}

void end_sample(uint64_t index, int64_t idle)
{
	struct place program = { { 0 } };
	int64_t waited = 0;

	if (has_returned && clock_read_thread >= returned)
		measure("return", &longest_return, clock_read_thread - returned, &returned_at,
			&program);
	if (has_expired)
		waited = expiry.begin - expiry.enabled + idle - expiry.enabled_idle;
	fprintf(out, "wake %lu %lu %ld %lu\n", index, has_expired ? expiry.begin + idle : 0, waited,
		clock_read_at + idle);
	/* The trace is read when the guest has sent its record, while QEMU still runs. */
	fflush(out);
	has_returned = has_expired = false;
}
