# Every verb is in tasks.py; `make` alone lists them. Make hands it variables of the command line (COVERAGE=1,
# ARGS=--ci) in the environment.
PYTHON ?= python3

.DEFAULT_GOAL := help
.NOTPARALLEL:
# A rule without a recipe for this file, or make would try to remake it with the rule below.
Makefile: ;
# The prerequisite does not exist, so a verb runs although a folder has its name (docs, bench).
%: always
	@$(PYTHON) tasks.py $@
always: ;
