/** The pages of the shop. Nothing in them comes from anybody but the shop and the service. */
const WORDS = {
  waiting: 'Scan this with the camera of your phone, or open your wallet here.',
  scanned: 'Your wallet has the question. Answer it there.',
  approved: 'Thank you. The wine is on its way.',
  refused: 'We could not see that you are 18 or older.',
  expired: 'Nobody answered in time.',
};

const page = (content) => `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Wine</title>
<style>body { font: 18px system-ui; max-width: 30em; margin: 2em auto; padding: 0 1em } svg { max-width: 20em }</style>
<main>${content}</main>
</html>`;

export function shopPage() {
  return page('<h1>Wine</h1><form method="post" action="/orders"><button>Order a bottle</button></form>');
}

/** @param order `uri` starts a wallet on this device. @param svg QR code of its `crossDeviceUri`. */
export function orderPage({ uri, state }, svg) {
  const isOpen = state === 'waiting' || state === 'scanned';
  const code = state === 'waiting' ? `${svg}<p><a href="${escaped(uri)}">Open my wallet on this device</a></p>` : '';
  return page(`<h1>Your order</h1><p role="status">${WORDS[state]}</p>${code}${isOpen ? reloader(state) : ''}`);
}

/** Asks the shop, not the service: no token of the service ever reaches a browser. */
const reloader = (state) => `<script>
setInterval(async () => {
  const { state } = await (await fetch('/order/state')).json();
  if (state !== '${state}') location.reload();
}, 1000);
</script>`;

function escaped(text) {
  return text.replaceAll('&', '&amp;').replaceAll('"', '&quot;').replaceAll('<', '&lt;');
}
