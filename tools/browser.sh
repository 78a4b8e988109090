#!/bin/sh
# What the tests of pages need: Chromium with its driver, and axe-core. Installs what is missing, where it can.
cd "$(dirname "$0")/.." || exit 1
AXE=axe-core@4.14.1
if ! { command -v chromium && command -v chromedriver; } >/dev/null 2>&1; then
	if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
		apt-get update -qq >/dev/null && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
			chromium chromium-driver >/dev/null
	fi
fi
if [ ! -f build/browser/node_modules/axe-core/axe.min.js ] && command -v npm >/dev/null 2>&1; then
	npm install --silent --no-save --no-package-lock --prefix build/browser "$AXE" >/dev/null
fi
exit 0 # what is still missing, the tests say
