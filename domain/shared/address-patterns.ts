/**
 * Short names that wallets have for themselves, against RFC 8252 section 7.1: those of the protocols and profiles, and of
 * wallets that are in use.
 */
export const SCHEMES_OF_WALLETS: readonly string[] = [
  ...[
    'openid',
    'openid4vci',
    'openid4vp',
    'openid-credential-offer',
    'openid-initiate-issuance',
    'openid-vc',
  ],
  ...['haip', 'haip-vci', 'haip-vp'],
  ...['eudi-openid4vp', 'eudi-openid4vci', 'eudi-openid4ci', 'eudi-wallet'],
  ...['mdoc', 'mdoc-openid4vp', 'didcomm', 'siopv2', 'wallet', 'eudiw', 'vcwallet'],
];

/** Schemes whose addresses run, open or read something where they are shown as links. */
export const HARMFUL_SCHEMES: readonly string[] = [
  ...[
    'javascript',
    'vbscript',
    'data',
    'blob',
    'file',
    'filesystem',
    'about',
    'view-source',
    'intent',
    'jar',
  ],
];

/**
 * Regular expressions for the API document (JSON Schema `pattern`) of texts that the service takes apart itself. They describe
 * what people write; a few texts more are taken, such as hosts with umlauts or in IPv6.
 */
const NUMBER = '(25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])';
const PORT = '(:([1-9][0-9]{0,3}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5]))?';
const HOST = `(([A-Za-z0-9-]+\\.)*[A-Za-z][A-Za-z0-9-]*|(${NUMBER}\\.){3}${NUMBER}|\\[::1\\])${PORT}`;
/** Never the one that an origin leaves out. */
const OWN_PORT = '(:([1-9][0-9]{3}|[1-5][0-9]{4}|6[0-4][0-9]{3}))?';
/** Schemes of http (RFC 9110 section 4.2) with a host, without credentials. */
const PLACE = `https?://${HOST}`;
const WEB = `${PLACE}([/?#][!-~]*)?`;
const DATA =
  "data:image/(png|jpeg|gif|webp|avif|svg\\+xml)(;base64,[A-Za-z0-9+/]+={0,2}|,[A-Za-z0-9._~!$&'()*+,;=:@/?%-]+)";
/** Characters of a URI (RFC 3986 section 2) but those that start a part of it. */
const PLAIN = "A-Za-z0-9._~!$&'()*+,;=%-";
const REST = `[${PLAIN}:/?@]*`;
const SCHEME_OF_APP = `([a-z][a-z0-9+-]*(\\.[a-z0-9+-]+)+|${SCHEMES_OF_WALLETS.join('|')})`;
/** @param more characters that may stand in it. */
const app = (more: string) => {
  const first = `[${PLAIN}${more}]`;
  const rest = `[${PLAIN}${more}:/?@]*`;
  return `${SCHEME_OF_APP}:((//[A-Za-z0-9._~-]*)?([/?](${first}${rest})?)?|${first}${rest})`;
};

export const WEB_ADDRESS_PATTERN = `^${WEB}$`;
export const ISSUER_PATTERN = `^${PLACE}(/[!"$->@-\\[\\]-~]*)?$`;
export const IMAGE_PATTERN = `^(${WEB}|${DATA})$`;
export const CONTACT_PATTERN = `^(${WEB}|mailto:[A-Za-z0-9._~+%-]+@[A-Za-z0-9.-]+|tel:[0-9+()-]+)$`;
/** Any URI but those that run, open or read something. */
export const URI_PATTERN = `^(${WEB}|(?!(${HARMFUL_SCHEMES.join('|')}|https?|wss?|ftp):)[a-z][a-z0-9+.-]*:[${PLAIN}][${PLAIN}:/?#@]*)$`;
export const REDIRECT_PATTERN = `^(https://${HOST}([/?]${REST})?|http://(localhost|127\\.0\\.0\\.1|\\[::1\\])${PORT}([/?]${REST})?|${app('')})$`;
/** `{sessionId}` may stand in it. */
export const RETURN_PATTERN = `^(${WEB}|${app('{}')})$`;
export const INVOCATION_PATTERN = `^(https://${HOST}([/?][!-"$-~]*)?|${SCHEME_OF_APP}://([/?]?[${PLAIN}]${REST})?)$`;
export const ORIGIN_PATTERN = `^(https://(([a-z0-9-]+\\.)*[a-z][a-z0-9-]*|(${NUMBER}\\.){3}${NUMBER})${OWN_PORT}|http://(localhost|127\\.0\\.0\\.1|\\[::1\\]|([a-z0-9-]+\\.)+localhost)${OWN_PORT}|(android|platform|ios):[!-~]+)$`;
/** One line of text. */
export const LINE_PATTERN = '^[^\\u0000-\\u001f\\u007f-\\u009f]*$';
