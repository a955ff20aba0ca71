/** Short schemes that wallets register, contrary to RFC 8252 section 7.1: those of protocols and profiles, and of wallets in use. */
export const SCHEMES_OF_WALLETS: readonly string[] = [
  ...['openid', 'openid4vci', 'openid4vp', 'openid-credential-offer', 'openid-initiate-issuance', 'openid-vc'],
  ...['haip', 'haip-vci', 'haip-vp'],
  ...['eudi-openid4vp', 'eudi-openid4vci', 'eudi-openid4ci', 'eudi-wallet'],
  ...['mdoc', 'mdoc-openid4vp', 'didcomm', 'siopv2', 'wallet', 'eudiw', 'vcwallet'],
  ...['av', 'swiyu', 'swiyu-verify', 'eudi-openid4vc', 'openid4vc'],
];

/** Schemes whose links execute, open or read something. */
export const HARMFUL_SCHEMES: readonly string[] = [
  ...['javascript', 'vbscript', 'data', 'blob', 'file', 'filesystem', 'about', 'view-source', 'intent', 'jar'],
];

/** Schemes of browsers, system programs and protocols: none of them starts a wallet. */
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
 * Regular expressions for the API document (JSON Schema `pattern`). They are not stricter than the service, which parses addresses with
 * `URL` and encodes invalid characters; they also match some invalid texts, such as addresses with credentials.
 */
const ADDRESS_CHARACTER = '[^\\u0000-\\u001f\\u007f]';
const WHITESPACE = '\\s*';
/** JSON Schema has no flag for case-insensitive matching. */
const caseInsensitive = (text: string) => text.replaceAll(/[a-z]/gi, (letter) => `[${letter.toUpperCase()}${letter.toLowerCase()}]`);
const web = `${WHITESPACE}${caseInsensitive('https')}?:${ADDRESS_CHARACTER}+${WHITESPACE}`;
const APP = `${WHITESPACE}[A-Za-z][A-Za-z0-9+.-]*:${ADDRESS_CHARACTER}*${WHITESPACE}`;
const harmless = (more = '') =>
  `(?!${WHITESPACE}(${[...HARMFUL_SCHEMES.map(caseInsensitive), more].filter((part) => part !== '').join('|')}):)`;

export const WEB_ADDRESS_PATTERN = `^${web}$`;
/** An address without query and fragment. */
export const ISSUER_PATTERN = `^${WHITESPACE}${caseInsensitive('https')}?:[^?#\\u0000-\\u001f\\u007f]+${WHITESPACE}$`;
export const IMAGE_PATTERN = `^(${web}|${caseInsensitive('data:image/')}${ADDRESS_CHARACTER}+)$`;
export const CONTACT_PATTERN = `^(${web}|${WHITESPACE}(${caseInsensitive('mailto')}|${caseInsensitive('tel')}):${ADDRESS_CHARACTER}+${WHITESPACE})$`;
/** Any URI except those that execute, open or read something. */
export const URI_PATTERN = `^${harmless()}${APP}$`;
/** Any name except addresses that execute, open or read something. */
export const NAME_PATTERN = `^${harmless()}${ADDRESS_CHARACTER}+$`;
/** A private scheme, https, or http. */
export const REDIRECT_PATTERN = `^${APP}$`;
/** `{sessionId}` may occur anywhere in it. */
export const RETURN_PATTERN = `^${WHITESPACE}${ADDRESS_CHARACTER}*:${ADDRESS_CHARACTER}*${WHITESPACE}$`;
/** `{auth_session}` may occur anywhere in it. */
export const PAGE_PATTERN = RETURN_PATTERN;
/** Schemes that start no wallet: harmful ones, and those of browsers, programs and protocols. */
export const FOREIGN_SCHEMES = `(${[...HARMFUL_SCHEMES, ...SCHEMES_OF_PROGRAMS].join('|')})`;
export const INVOCATION_PATTERN = `^(${WHITESPACE}${caseInsensitive('https')}:${ADDRESS_CHARACTER}+${WHITESPACE}|(?!${WHITESPACE}${caseInsensitive(FOREIGN_SCHEMES)}:)${APP})$`;
export const ORIGIN_PATTERN = '^(https?://[^/?#@*\\s]+|(android|platform|ios):[!-~]+)$';
export const LINE_PATTERN = '^[^\\u0000-\\u001f\\u007f-\\u009f]*$';
