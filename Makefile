# SPDX-License-Identifier: Apache-2.0
#
#   make                             builds the command, as one file that needs no library of the system, and
#                                    diskcache-net, which needs the system's libraries, and libcurl when it is used
#   make install PREFIX=/usr/local   installs it with its manual, completions and examples; DESTDIR=… below another root
#   make uninstall                   removes what install has put there
#   make check                       all that a change must pass

PREFIX = /usr/local
DESTDIR =
# What is installed: `make install` builds nothing, so that it can be run by another user than `make`.
BINARY = .build/release/diskcache
# What the command becomes for the network; empty: that is not installed.
NETBINARY = .build/net/release/diskcache-net

bindir = $(PREFIX)/bin
# Where the command in bindir looks for it, if it is not beside it.
libexecdir = $(PREFIX)/libexec/diskcache
datadir = $(PREFIX)/share
examples = $(wildcard Sources/diskcache/Examples/*)
exampledir = $(datadir)/doc/diskcache/examples

installed = \
	$(bindir)/diskcache \
	$(libexecdir)/diskcache-net \
	$(datadir)/man/man1/diskcache.1 \
	$(datadir)/bash-completion/completions/diskcache \
	$(datadir)/zsh/site-functions/_diskcache \
	$(datadir)/fish/vendor_completions.d/diskcache.fish \
	$(patsubst Sources/diskcache/Examples/%,$(exampledir)/%,$(examples))

.PHONY: all install uninstall check

all:
	swift build -c release --product diskcache -Xswiftc -static-executable
	swift build -c release --product diskcache-net --static-swift-stdlib --scratch-path .build/net

# All that can fail for want of a binary comes first: half an installation is worse than none.
install:
	@test -x '$(BINARY)' || { echo 'there is no $(BINARY): run make first' >&2; exit 1; }
	@test -z '$(NETBINARY)' -o -x '$(NETBINARY)' \
		|| { echo 'there is no $(NETBINARY): run make first, or say NETBINARY=' >&2; exit 1; }
	@set -e; made=$$(mktemp -d); trap 'rm -rf "$$made"' EXIT; \
	put() { install -d "$$(dirname "$(DESTDIR)$$3")"; install -m $$1 "$$2" "$(DESTDIR)$$3"; echo "$(DESTDIR)$$3"; }; \
	'$(BINARY)' man-page > "$$made/man"; \
	for shell in bash zsh fish; do '$(BINARY)' completions $$shell > "$$made/$$shell"; done; \
	for example in $(examples); do \
		sed 's|/usr/local/bin|$(bindir)|' "$$example" > "$$made/$${example##*/}"; \
	done; \
	put 755 '$(BINARY)' '$(bindir)/diskcache'; \
	if [ -n '$(NETBINARY)' ]; then put 755 '$(NETBINARY)' '$(libexecdir)/diskcache-net'; fi; \
	put 644 "$$made/man" '$(datadir)/man/man1/diskcache.1'; \
	put 644 "$$made/bash" '$(datadir)/bash-completion/completions/diskcache'; \
	put 644 "$$made/zsh" '$(datadir)/zsh/site-functions/_diskcache'; \
	put 644 "$$made/fish" '$(datadir)/fish/vendor_completions.d/diskcache.fish'; \
	for example in $(examples); do \
		put 644 "$$made/$${example##*/}" "$(exampledir)/$${example##*/}"; \
	done

uninstall:
	rm -f $(installed:%='$(DESTDIR)%')
	-rmdir '$(DESTDIR)$(exampledir)' '$(DESTDIR)$(datadir)/doc/diskcache' '$(DESTDIR)$(libexecdir)'

check:
	.ci/run
