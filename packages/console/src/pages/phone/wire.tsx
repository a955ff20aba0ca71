import { jsonOfBase64 } from '../../../../wallet/src/core/formats/base64.ts';
import type { Exchange } from '../../../../wallet/src/core/index.ts';
import { handset } from './handset.ts';

export function Wire() {
  const exchanges = handset.exchanges.value;
  if (exchanges.length === 0) return null;
  return (
    <details class="wire">
      <summary>On the wire: {exchanges.length} calls of the phone</summary>
      <ol>
        {exchanges.map((exchange, index) => (
          <li key={`${index} ${exchange.url}`}>
            <details>
              <summary>
                <code>
                  {exchange.method} {new URL(exchange.url).pathname}
                </code>{' '}
                <span class="fine">
                  {exchange.status ?? exchange.error} · {exchange.milliseconds} ms
                  {bringsNonce(exchange) && ' · as it should be: the first answer brings the nonce for the proof (RFC 9449 section 8)'}
                </span>
              </summary>
              <pre>{requestOf(exchange)}</pre>
              <pre>{pretty(exchange.responseBody)}</pre>
            </details>
          </li>
        ))}
      </ol>
      <p class="fine">This is your own phone, so nothing is hidden. Its tokens are of this window and end soon.</p>
    </details>
  );
}

/** The phone asks once more with it, so nothing failed, whatever the console of the browser says. */
function bringsNonce({ status, responseBody }: Exchange): boolean {
  return (status === 401 || status === 400) && responseBody.includes('use_dpop_nonce');
}

function requestOf({ requestHeaders, requestBody }: Exchange): string {
  const headers = Object.entries(requestHeaders).map(([name, value]) => `${name}: ${value}`);
  return [...headers, '', pretty(requestBody)].join('\n').trim();
}

/** JSON in lines, forms in lines, and whatever a JWT says beside it. */
function pretty(body: string): string {
  if (body === '') return '(empty)';
  try {
    return withTokens(JSON.stringify(JSON.parse(body), null, 2));
  } catch {
    return withTokens(/^[\w%.+~-]+=/.test(body) ? [...new URLSearchParams(body)].map((pair) => pair.join(' = ')).join('\n') : body);
  }
}

const JWT = /\beyJ[\w-]+\.(eyJ[\w-]+)\.[\w-]+/g;

function withTokens(text: string): string {
  const decoded = [...text.matchAll(JWT)].slice(0, 5).map(([whole]) => {
    const [header = '', payload = ''] = whole.split('.');
    return `${whole.slice(0, 24)}… says\n${json(header)}\n${json(payload)}`;
  });
  return [text, ...decoded].join('\n\n');
}

function json(part: string): string {
  try {
    return JSON.stringify(jsonOfBase64(part), null, 2);
  } catch {
    return part;
  }
}
