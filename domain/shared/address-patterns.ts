/**
 * Short names that wallets have for themselves, against RFC 8252 section 7.1: those of the protocols and profiles, and of
 * wallets that are in use.
 */
export const SCHEMES_OF_WALLETS: readonly string[] = [
  ...['openid', 'openid4vci', 'openid4vp', 'openid-credential-offer', 'openid-initiate-issuance', 'openid-vc'],
  ...['haip', 'haip-vci', 'haip-vp'],
  ...['eudi-openid4vp', 'eudi-openid4vci', 'eudi-openid4ci', 'eudi-wallet'],
  ...['mdoc', 'mdoc-openid4vp', 'didcomm', 'siopv2', 'wallet', 'eudiw', 'vcwallet'],
  ...['av', 'swiyu', 'swiyu-verify', 'eudi-openid4vc', 'openid4vc'],
];

/** Schemes whose addresses run, open or read something where they are shown as links. */
export const HARMFUL_SCHEMES: readonly string[] = [
  ...['javascript', 'vbscript', 'data', 'blob', 'file', 'filesystem', 'about', 'view-source', 'intent', 'jar'],
];

/** Schemes of browsers, of programs of the system and of protocols: none of them starts a wallet. */
const SCHEMES_OF_PROGRAMS: readonly string[] = [
  ...['https?', 'wss?', 'ftps?', 'sftp', 'ssh', 'telnet', 'tn3270', 'rlogin', 'ldaps?', 'smb', 'afp', 'nfs'],
  ...['dav', 'webcal', 'gopher', 'news', 'nntp', 'irc', 'ircs', 'git', 'svn', 'rsync', 'magnet', 'vnc', 'rdp'],
  ...['mailto', 'tel', 'sms', 'mms', 'callto', 'facetime', 'facetime-audio', 'sips?', 'skype', 'xmpp', 'maps'],
  ...['chrome', 'chrome-.*', 'googlechrome', 'googlechromes', 'firefox', 'moz-.*', 'opera', 'edge', 'brave'],
  ...['ms-.*', 'microsoft-.*', 'search', 'search-ms', 'shell', 'hcp', 'help', 'cmd', 'powershell'],
  ...['itms.*', 'x-apple.*', 'x-web-search', 'prefs', 'app-settings', 'market', 'android-app', 'content'],
  ...['res', 'resource', 'cid', 'mid', 'mhtml', 'mk', 'feed', 'steam', 'vscode', 'vscode-insiders'],
];

/**
 * Regular expressions for the API document (JSON Schema `pattern`). None of them is stricter than the rule of the service, which parses
 * addresses with `URL` and encodes what a URI cannot contain; some texts more match, such as those with credentials.
 */
const INSIDE = '[^\\u0000-\\u001f\\u007f]';
const AROUND = '\\s*';
/** JSON Schema has no flag for letters of both cases. */
const anyCase = (text: string) => text.replaceAll(/[a-z]/gi, (letter) => `[${letter.toUpperCase()}${letter.toLowerCase()}]`);
const web = `${AROUND}${anyCase('https')}?:${INSIDE}+${AROUND}`;
const APP = `${AROUND}[A-Za-z][A-Za-z0-9+.-]*:${INSIDE}*${AROUND}`;
const harmless = (more = '') => `(?!${AROUND}(${[...HARMFUL_SCHEMES.map(anyCase), more].filter((part) => part !== '').join('|')}):)`;

export const WEB_ADDRESS_PATTERN = `^${web}$`;
/** Neither a query nor a fragment. */
export const ISSUER_PATTERN = `^${AROUND}${anyCase('https')}?:[^?#\\u0000-\\u001f\\u007f]+${AROUND}$`;
export const IMAGE_PATTERN = `^(${web}|${anyCase('data:image/')}${INSIDE}+)$`;
export const CONTACT_PATTERN = `^(${web}|${AROUND}(${anyCase('mailto')}|${anyCase('tel')}):${INSIDE}+${AROUND})$`;
/** Any URI but those that run, open or read something. */
export const URI_PATTERN = `^${harmless()}${APP}$`;
/** Any name but addresses that run, open or read something. */
export const NAME_PATTERN = `^${harmless()}${INSIDE}+$`;
/** A private scheme, https, or http. */
export const REDIRECT_PATTERN = `^${APP}$`;
/** `{sessionId}` may stand anywhere in it. */
export const RETURN_PATTERN = `^${AROUND}${INSIDE}*:${INSIDE}*${AROUND}$`;
/** `{auth_session}` may stand anywhere in it. */
export const PAGE_PATTERN = RETURN_PATTERN;
/** What starts no wallet: schemes that run, open or read something, and those of browsers, programs and protocols. */
export const FOREIGN_SCHEMES = `(${[...HARMFUL_SCHEMES, ...SCHEMES_OF_PROGRAMS].join('|')})`;
export const INVOCATION_PATTERN = `^(${AROUND}${anyCase('https')}:${INSIDE}+${AROUND}|(?!${AROUND}${anyCase(FOREIGN_SCHEMES)}:)${APP})$`;
export const ORIGIN_PATTERN = '^(https?://[^/?#@*\\s]+|(android|platform|ios):[!-~]+)$';
/** One line of text. */
export const LINE_PATTERN = '^[^\\u0000-\\u001f\\u007f-\\u009f]*$';
