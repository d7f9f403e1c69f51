# src/core/euno_epoch.c: nodes are given back under those who look
/^euno_epoch_passed/,/^}/s/pinned != 0 && pinned <= retired/0 \&\& retired/
