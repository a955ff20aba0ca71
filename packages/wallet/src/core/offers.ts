import type { Openid4vciClient } from '@openid4vc/openid4vci';
import { defined, type Label, type Look, type Picture, type StoredCredential } from './cards.ts';
import type { Path } from './claims.ts';

export type Offer = Awaited<ReturnType<Openid4vciClient['resolveCredentialOffer']>>;
export type IssuerMetadata = Awaited<ReturnType<Openid4vciClient['resolveIssuerMetadata']>>;

/** Content of an offer for the user's decision. */
export type ReadOffer = {
  readonly issuer: StoredCredential['issuer'];
  readonly credentials: readonly OfferedCredential[];
  readonly grant: 'pre_authorized_code' | 'authorization_code';
  /** Input of the transaction code; absent if none is required. */
  readonly txCode?: { readonly inputMode: 'numeric' | 'text'; readonly length?: number; readonly description?: string };
  /** The unchanged offer. */
  readonly offer: Offer;
  readonly metadata: IssuerMetadata;
};

export type OfferedCredential = {
  readonly configurationId: string;
  readonly format: string;
  readonly type: string;
  readonly look: Look;
  readonly labels: readonly Label[];
};

const PRE_AUTHORIZED = 'urn:ietf:params:oauth:grant-type:pre-authorized_code';

/** @throws Error when the issuer's metadata lack an offered configuration. */
export function describeOffer(offer: Offer, metadata: IssuerMetadata, languages: readonly string[]): ReadOffer {
  const grants = (offer.grants ?? {}) as Record<string, { tx_code?: Record<string, unknown> } | undefined>;
  const code = grants[PRE_AUTHORIZED];
  const txCode = code?.tx_code;
  return {
    issuer: issuerOf(metadata, languages),
    credentials: offer.credential_configuration_ids.map((id) => credentialOf(metadata, id, languages)),
    grant: code === undefined ? 'authorization_code' : 'pre_authorized_code',
    ...(txCode !== undefined && {
      txCode: {
        inputMode: txCode['input_mode'] === 'text' ? 'text' : 'numeric',
        ...defined({ length: txCode['length'] as number | undefined, description: txCode['description'] as string | undefined }),
      },
    }),
    offer,
    metadata,
  };
}

function issuerOf({ credentialIssuer }: IssuerMetadata, languages: readonly string[]): StoredCredential['issuer'] {
  const { credential_issuer: identifier, display } = credentialIssuer;
  const entry = inLanguage(display as DisplayEntry[] | undefined, languages);
  const name = entry?.name ?? new URL(identifier).host;
  return { identifier, name, ...defined({ logo: pictureOf(entry?.logo) }) };
}

type DisplayEntry = {
  name?: string;
  locale?: string;
  description?: string;
  background_color?: string;
  text_color?: string;
  logo?: { uri?: string; alt_text?: string };
  background_image?: { uri?: string };
};
type ClaimEntry = { path?: Path; display?: DisplayEntry[] };

function credentialOf({ credentialIssuer }: IssuerMetadata, id: string, languages: readonly string[]): OfferedCredential {
  const supported = credentialIssuer.credential_configurations_supported[id] as Record<string, unknown> | undefined;
  if (supported === undefined) throw new Error(`the issuer offers "${id}", which it does not have`);
  // Since draft 15, display data are in `credential_metadata`.
  const displayMetadata = (supported['credential_metadata'] ?? supported) as { display?: DisplayEntry[]; claims?: ClaimEntry[] };
  const display = inLanguage(displayMetadata.display, languages);
  const claims = Array.isArray(displayMetadata.claims) ? displayMetadata.claims : [];
  return {
    configurationId: id,
    format: String(supported['format']),
    type: String(supported['vct'] ?? supported['doctype'] ?? id),
    look: {
      name: display?.name ?? id,
      ...defined({
        description: display?.description,
        backgroundColor: display?.background_color,
        textColor: display?.text_color,
        logo: pictureOf(display?.logo),
        backgroundImage: display?.background_image?.uri,
      }),
    },
    labels: claims.flatMap(({ path, display }) => {
      const name = inLanguage(display, languages)?.name;
      return path === undefined ? [] : [{ path, name: name ?? path.join(' › ') }];
    }),
  };
}

function pictureOf(logo: DisplayEntry['logo']): Picture | undefined {
  if (logo?.uri === undefined) return undefined;
  return { uri: logo.uri, ...defined({ altText: logo.alt_text }) };
}

/** The first entry in a language of the user, else one without language, else the first. */
function inLanguage(entries: readonly DisplayEntry[] | undefined, languages: readonly string[]): DisplayEntry | undefined {
  for (const language of languages) {
    const [primaryTag] = language.toLowerCase().split('-');
    const entry = entries?.find(({ locale }) => locale?.toLowerCase().split('-')[0] === primaryTag);
    if (entry !== undefined) return entry;
  }
  return entries?.find(({ locale }) => locale === undefined) ?? entries?.[0];
}
