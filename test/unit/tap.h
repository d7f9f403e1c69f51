/*-------------------------------------------------------------------------
 *
 * tap.h
 *	  The little that the unit tests need to report in TAP.
 *
 * A test is a span between tap_begin and tap_end; it fails when any CHECK in
 * it failed, in whichever thread.  Only the first few failures of a test are
 * printed.
 *
 *-------------------------------------------------------------------------
 */
#ifndef TAP_H
#define TAP_H

#define CHECK(condition, ...) \
	do { if (!(condition)) tap_fail(__FILE__, __LINE__, __VA_ARGS__); } while (0)

extern void tap_begin(const char *format,...)
			__attribute__((format(printf, 1, 2)));
extern void tap_fail(const char *file, int line, const char *format,...)
			__attribute__((format(printf, 3, 4)));

/* How often the current test has failed so far: loops may stop early. */
extern int	tap_bad(void);

extern void tap_end(void);

/* Prints the plan; returns the program's exit code. */
extern int	tap_done(void);

#endif							/* TAP_H */
