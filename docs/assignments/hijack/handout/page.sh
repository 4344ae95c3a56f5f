#!/bin/sh
# The web server of 10.4.0.80: `page.sh right` or `page.sh false` is what its page says.
mkdir -p /root/www
echo "$1" >/root/www/index.html
cd /root/www || exit 1
python3 -m http.server 80 >/dev/null 2>&1 &
