#!/bin/sh
# Fetch the page of the service's API (swagger-ui-dist, Apache-2.0) by npm, and put what
# docsigma ships under src/docsigma/service/static, with its licences.
set -eu
version=5.34.1
static=$(cd "$(dirname "$0")/.." && pwd)/src/docsigma/service/static
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
npm pack --silent "swagger-ui-dist@$version" >/dev/null
tar -xzf "swagger-ui-dist-$version.tgz"
mkdir -p "$static"
# The map of the sources is not shipped, so nothing may ask for it.
sed '/^\/\/# sourceMappingURL=/d' package/swagger-ui-bundle.js >"$static/swagger-ui-bundle.js"
sed 's|/\*# sourceMappingURL=.*\*/||' package/swagger-ui.css >"$static/swagger-ui.css"
cp package/swagger-ui-bundle.js.LICENSE.txt "$static/"
cp package/LICENSE "$static/swagger-ui.LICENSE.txt"
cp package/NOTICE "$static/swagger-ui.NOTICE.txt"
