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
  ...['av', 'swiyu', 'swiyu-verify', 'eudi-openid4vc', 'openid4vc'],
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

/** Schemes of browsers, of programs of the system and of protocols: none of them starts a wallet. */
const SCHEMES_OF_PROGRAMS: readonly string[] = [
  ...['https?', 'wss?', 'ftps?', 'sftp', 'ssh', 'telnet', 'tn3270', 'rlogin', 'ldaps?', 'smb', 'afp', 'nfs'],
  ...[
    'dav',
    'webcal',
    'gopher',
    'news',
    'nntp',
    'irc',
    'ircs',
    'git',
    'svn',
    'rsync',
    'magnet',
    'vnc',
    'rdp',
  ],
  ...[
    'mailto',
    'tel',
    'sms',
    'mms',
    'callto',
    'facetime',
    'facetime-audio',
    'sips?',
    'skype',
    'xmpp',
    'maps',
  ],
  ...['chrome', 'chrome-.*', 'googlechrome', 'googlechromes', 'firefox', 'moz-.*', 'opera', 'edge', 'brave'],
  ...['ms-.*', 'microsoft-.*', 'search', 'search-ms', 'shell', 'hcp', 'help', 'cmd', 'powershell'],
  ...['itms.*', 'x-apple.*', 'x-web-search', 'prefs', 'app-settings', 'market', 'android-app', 'content'],
  ...['res', 'resource', 'cid', 'mid', 'mhtml', 'mk', 'feed', 'steam', 'vscode', 'vscode-insiders'],
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
/** Characters of a URI (RFC 3986 section 2) but those that start a part of it, and `%`, which encodes others. */
const PLAIN = "A-Za-z0-9._~!$&'()*+,;=-";
const ENCODED = '%[0-9A-Fa-f]{2}';
const SESSION_ID = '|\\{sessionId\\}';
/** @param more what may stand in it besides, as a further alternative. */
const first = (more = '') => `([${PLAIN}]|${ENCODED}${more})`;
const rest = (more = '') => `([:/?@${PLAIN}]|${ENCODED}${more})*`;
const FRAGMENT = `(#${rest()})?`;
const web = (more = '') => `${PLACE}([/?]${rest(more)})?(#${rest(more)})?`;
const WEB = web();
const DATA = `data:image/(png|jpeg|gif|webp|avif|svg\\+xml)(;base64,[A-Za-z0-9+/]+={0,2}|,([A-Za-z0-9._~!$&'()*+,;=:@/?-]|${ENCODED})+)`;
const SCHEME_OF_APP = `([a-z][a-z0-9+-]*(\\.[a-z0-9+-]+)+|${SCHEMES_OF_WALLETS.join('|')})`;
const app = (more = '') => {
  const path = `[/?](${first(more)}${rest(more)})?`;
  return `${SCHEME_OF_APP}:(//[A-Za-z0-9._~-]*(${path})?|${path}|${first(more)}${rest(more)})`;
};
const HARMFUL = HARMFUL_SCHEMES.join('|');

export const WEB_ADDRESS_PATTERN = `^${WEB}$`;
/** `{auth_session}` may stand in it. */
export const PAGE_PATTERN = `^${web('|\\{auth_session\\}')}$`;
export const ISSUER_PATTERN = `^${PLACE}(/([:/@${PLAIN}]|${ENCODED})*)?$`;
export const IMAGE_PATTERN = `^(${WEB}|${DATA})$`;
export const CONTACT_PATTERN = `^(${WEB}|mailto:[A-Za-z0-9._~+-]+@[A-Za-z0-9.-]+|tel:[0-9+()-]+)$`;
/** Any URI but those that run, open or read something. */
export const URI_PATTERN = `^(${WEB}|(?!(${HARMFUL}|https?|wss?|ftp):)[a-z][a-z0-9+.-]*:${first()}${rest()}${FRAGMENT})$`;
/** A URI, or a name that reads as a relative one. */
export const NAME_PATTERN = `^(${WEB}|(?!(${HARMFUL}|https?):)[a-z][a-z0-9+.-]*:${first()}${rest()}${FRAGMENT}|${first()}(${first()}|[/?@])*${FRAGMENT})$`;
export const REDIRECT_PATTERN = `^(https://${HOST}([/?]${rest()})?|http://(localhost|127\\.0\\.0\\.1|\\[::1\\])${PORT}([/?]${rest()})?|${app()})$`;
/** `{sessionId}` may stand in it. */
export const RETURN_PATTERN = `^(${web(SESSION_ID)}|${app(SESSION_ID)})$`;
/** What starts no wallet: schemes that run, open or read something, and those of browsers, programs and protocols. */
export const FOREIGN_SCHEMES = `(${HARMFUL}|${SCHEMES_OF_PROGRAMS.join('|')})`;
export const INVOCATION_PATTERN = `^(https://${HOST}([/?]${rest()})?|(?!${FOREIGN_SCHEMES}:)[a-z][a-z0-9+.-]*://([/?]?${first()}${rest()})?)$`;
export const ORIGIN_PATTERN = `^(https://(([a-z0-9-]+\\.)*[a-z][a-z0-9-]*|(${NUMBER}\\.){3}${NUMBER})${OWN_PORT}|http://(localhost|127\\.0\\.0\\.1|\\[::1\\]|([a-z0-9-]+\\.)+localhost)${OWN_PORT}|(android|platform|ios):[!-~]+)$`;
/** One line of text. */
export const LINE_PATTERN = '^[^\\u0000-\\u001f\\u007f-\\u009f]*$';
