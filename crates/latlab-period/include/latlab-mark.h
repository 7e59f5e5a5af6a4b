/* Marks of the parts of a cycle; latlab check shows how long each took. See docs/marks.md.
 * A mark is a NOP with a note of its place, in the format of SystemTap's sys/sdt.h, which perf and
 * bpftrace read too: latlab:begin and latlab:end. No library is needed. */
#ifndef LATLAB_MARK_H
#define LATLAB_MARK_H
#include <stdint.h>

#if defined(__x86_64__)
#define LATLAB_MARK_ARGUMENTS "8@%%rdi -8@%%rsi"
#define LATLAB_MARK_REGISTERS "rdi", "rsi"
#elif defined(__aarch64__)
#define LATLAB_MARK_ARGUMENTS "8@x0 -8@x1"
#define LATLAB_MARK_REGISTERS "x0", "x1"
#else
#error "latlab-mark.h is for x86-64 and arm64"
#endif

#define LATLAB_MARK_(what, first, second, name, id)                                       \
	do {                                                                              \
		const char *latlab_name_ = (name);                                        \
		int64_t latlab_id_ = (id);                                                \
		register const char *latlab_name __asm__(first) = latlab_name_;           \
		register int64_t latlab_id __asm__(second) = latlab_id_;                  \
		__asm__ volatile(                                                         \
			"990: nop\n"                                                        \
			".pushsection .note.stapsdt, \"?\", %%note\n"                      \
			".balign 4\n"                                                     \
			".4byte 992f - 991f, 994f - 993f, 3\n"                            \
			"991: .asciz \"stapsdt\"\n"                                       \
			"992: .balign 4\n"                                                \
			"993: .8byte 990b, _.stapsdt.base, 0\n"                           \
			".asciz \"latlab\"\n.asciz \"" what "\"\n"                        \
			".asciz \"" LATLAB_MARK_ARGUMENTS "\"\n"                          \
			"994: .balign 4\n"                                                \
			".popsection\n"                                                   \
			".ifndef _.stapsdt.base\n"                                        \
			".pushsection .stapsdt.base, \"aG\", %%progbits, .stapsdt.base, comdat\n" \
			".weak _.stapsdt.base\n.hidden _.stapsdt.base\n"                  \
			"_.stapsdt.base: .space 1\n.size _.stapsdt.base, 1\n"             \
			".popsection\n.endif\n"                                           \
			: : "r"(latlab_name), "r"(latlab_id) : "memory");                 \
	} while (0)
#define LATLAB_MARK(what, registers, name, id) LATLAB_MARK_(what, registers, name, id)

/* A part of a cycle begins. `name` is the same in each cycle, at most 63 bytes; `id` is any number that
 * tells this time from others, such as that of the cycle. */
#define latlab_begin(name, id) LATLAB_MARK("begin", LATLAB_MARK_REGISTERS, name, id)
/* The part ends. Parts may contain others. */
#define latlab_end(name) LATLAB_MARK("end", LATLAB_MARK_REGISTERS, name, 0)

#endif
