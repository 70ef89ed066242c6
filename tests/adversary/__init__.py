"""Raw requests of every bad manner, judged by what other servers make of them: `make adversary`."""
