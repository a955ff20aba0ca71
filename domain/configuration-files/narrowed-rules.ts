import type { FileKind } from '../resources.ts';
import type { FieldError } from '../shared/failure.ts';

/**
 * A rule that rejects values which an earlier release accepted, for security or for a specification. A file that violates nothing else does
 * not prevent the start: the stored object is retained, and nothing new is created from the file.
 */
export type NarrowedRule = {
  /** Kind of files that the rule concerns; absent for all kinds. */
  readonly kind?: FileKind;
  /** Dotted path of the property. */
  readonly path: RegExp;
  readonly message: RegExp;
  /** Last release that accepted the value. */
  readonly acceptedBy: string;
  /** The security or specification requirement. */
  readonly because: string;
  /** Instruction for the operator. */
  readonly change: string;
};

const FIRST_RELEASE = '0.1.0';
const SCHEME = /^data\.LoTE\.ListAndSchemeInformation\b/;

/** `docs/reference/compatibility.md` has a row for each rule; a test starts a service with an example of each. */
export const NARROWED_RULES: readonly NarrowedRule[] = [
  {
    path: /\.headerName$/,
    message: /^The service signs webhooks/,
    acceptedBy: FIRST_RELEASE,
    because: 'security: the header would replace the signature of the webhook',
    change: 'rename the header, such as to X-Api-Key',
  },
  {
    kind: 'issuance-configuration',
    path: /^walletProviderTrustLists\.\d+$/,
    message: /not a list of wallet providers/,
    acceptedBy: FIRST_RELEASE,
    because: 'a list of credential issuers names no wallet provider, so every wallet would be rejected',
    change: 'name a list of wallet providers',
  },
  {
    kind: 'issuance-configuration',
    path: /^walletProviderTrustLists\.\d+$/,
    message: /^The trust list cannot be used/,
    acceptedBy: FIRST_RELEASE,
    because: 'security: the signer of the list is not configured',
    change: 'give the certificate of its signer in walletProviderTrustListCertificates',
  },
  {
    kind: 'issuance-configuration',
    path: /^walletClients\.\d+\.redirect_uris\.\d+$/,
    message: /^an https address, a private scheme with a dot/,
    acceptedBy: FIRST_RELEASE,
    because: 'security: RFC 8252 section 7.1, RFC 6749 section 3.1.2, FAPI 2.0 section 5.3.2.2',
    change: 'use https, http of the device itself, or a private scheme with a dot, without a fragment',
  },
  {
    path: /\b(logo|background_image)\.uri$/,
    message: /^an http or https address without credentials/,
    acceptedBy: FIRST_RELEASE,
    because: 'OpenID4VCI 1.0 section 12.2.4: a URI from which wallets load an image',
    change: 'give an http or https address, or a data URL of an image',
  },
  {
    kind: 'presentation-configuration',
    path: /^(redirectUri|invocationUri)$/,
    message: /a private scheme with a dot|no scheme of a browser/,
    acceptedBy: FIRST_RELEASE,
    because: 'security: RFC 8252 section 7.1; passwords in addresses are sent to the browser',
    change: 'use https, or a private scheme with a dot or of a wallet',
  },
  {
    kind: 'presentation-configuration',
    path: /^dcql_query\.credentials\.\d+\.(claims|claim_sets|trusted_authorities)\./,
    message:
      /^(A path begins with the name|The id is used twice|A key identifier is base64url|It is only allowed for mso_mdoc|has to be at most 2147483647)/,
    acceptedBy: FIRST_RELEASE,
    because: 'OpenID4VP 1.0 sections 6.1, 6.1.1.1, 6.3, 7 and B.2.4: wallets reject the whole request',
    change: 'remove what the message names from the query',
  },
  {
    kind: 'presentation-configuration',
    path: /^dcql_query\.credential_sets\.\d+\.options\./,
    message: /^The id is used twice/,
    acceptedBy: FIRST_RELEASE,
    because: 'OpenID4VP 1.0 section 6.2: an option names each credential once',
    change: 'name each credential once',
  },
  {
    kind: 'presentation-configuration',
    path: /^dcql_query$/,
    message: /^a query has at most \d+ characters/,
    acceptedBy: FIRST_RELEASE,
    because: 'security: each answer is compared with the query',
    change: 'divide the query',
  },
  {
    kind: 'credential-configuration',
    path: /^vct(\.vct|\.extends)?$/,
    message: /^a name without a colon, or a URI/,
    acceptedBy: FIRST_RELEASE,
    because: 'RFC 7519 section 2 (StringOrURI), SD-JWT VC section 3.2.2.1',
    change: 'give a URI',
  },
  {
    kind: 'credential-configuration',
    path: /^vct\.(claims|display|extends)\b/,
    message: /^/,
    acceptedBy: FIRST_RELEASE,
    because: 'SD-JWT VC sections 5 to 7: wallets reject type metadata of another shape',
    change: 'write the type metadata as the specification says',
  },
  {
    kind: 'trust-list',
    path: SCHEME,
    message: /^(missing$|lists of this type have|either policies or notices|an absolute URI|an address that begins)/,
    acceptedBy: FIRST_RELEASE,
    because: 'ETSI TS 119 602 section 6.3 and annexes D to H',
    change: 'complete the scheme information, or remove LoTEType',
  },
  {
    kind: 'trust-list',
    path: /^entities\.\d+\.info\.(streetAddress|country)$/,
    message: /reject the whole list/,
    acceptedBy: FIRST_RELEASE,
    because: 'ETSI TS 119 602 section 6.5.3, for lists of European types',
    change: 'give street and country, or remove LoTEType',
  },
  {
    kind: 'trust-list',
    path: /^entities\.\d+\.info\.name$/,
    message: /^Readers cannot tell this entity/,
    acceptedBy: FIRST_RELEASE,
    because: 'security: the revocations of one entity would apply to the other',
    change: 'give each entity its own name',
  },
  {
    kind: 'trust-list',
    path: /^keyChainId$/,
    message: /and readers of the type .* reject that/,
    acceptedBy: FIRST_RELEASE,
    because: 'ETSI TS 119 602 section 6.8, for lists of European types',
    change: 'create a key chain for trustList that names the operator, or remove LoTEType',
  },
  {
    kind: 'credential-configuration',
    path: /^(claims|config\.claimsByNamespace)\./,
    message: /^(must be .+|is required) \((ISO\/IEC 18013-5|AAMVA|PID Rulebook|EU age verification)/,
    acceptedBy: FIRST_RELEASE,
    because: 'ISO/IEC 18013-5 table 5, PID Rulebook: readers reject the document or the element',
    change: 'give the element the type that the message names',
  },
  {
    path: /^$/,
    message: /\bQUOTA_[A-Z_]+/,
    acceptedBy: FIRST_RELEASE,
    because: 'security: one tenant must not use up the memory of other tenants',
    change: 'raise the setting that the message names',
  },
];

/** @returns the rule that causes an error of a file; undefined for errors that no release accepted. */
export function narrowedRuleOf(kind: FileKind, { path, message }: FieldError): NarrowedRule | undefined {
  return NARROWED_RULES.find(
    (rule) => (rule.kind === undefined || rule.kind === kind) && rule.path.test(path) && rule.message.test(message),
  );
}
