# src/core/euno_epoch.c: an operation does not pin its epoch
/^euno_epoch_enter/,/^}/s/euno_load64_acquire(&epochs->current)/0/
