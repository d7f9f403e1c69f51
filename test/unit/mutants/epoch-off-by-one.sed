# src/core/euno_epoch.c: the epoch of the unlinking is not waited for
/^euno_epoch_passed/,/^}/s/pinned <= retired/pinned < retired/
