import type { Openid4vciClient } from '@openid4vc/openid4vci';
import { defined, type Label, type Look, type Picture, type StoredCredential } from './cards.ts';
import type { Path } from './claims.ts';

export type Offer = Awaited<ReturnType<Openid4vciClient['resolveCredentialOffer']>>;
export type IssuerMetadata = Awaited<ReturnType<Openid4vciClient['resolveIssuerMetadata']>>;

/** What an offer says, for a person who is to decide. */
export type ReadOffer = {
  readonly issuer: StoredCredential['issuer'];
  readonly credentials: readonly OfferedCredential[];
  readonly grant: 'pre_authorized_code' | 'authorization_code';
  /** What the issuer sent by another way; absent: none is asked for. */
  readonly txCode?: {
    readonly inputMode: 'numeric' | 'text';
    readonly length?: number;
    readonly description?: string;
  };
  /** As it came. */
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

/** @throws Error when the issuer does not have what it offers. */
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
        ...defined({
          length: txCode['length'] as number | undefined,
          description: txCode['description'] as string | undefined,
        }),
      },
    }),
    offer,
    metadata,
  };
}

function issuerOf({ credentialIssuer }: IssuerMetadata, languages: readonly string[]): StoredCredential['issuer'] {
  const { credential_issuer: identifier, display } = credentialIssuer;
  const shown = inLanguage(display as Shown[] | undefined, languages);
  const name = shown?.name ?? new URL(identifier).host;
  return { identifier, name, ...defined({ logo: pictureOf(shown?.logo) }) };
}

type Shown = {
  name?: string;
  locale?: string;
  description?: string;
  background_color?: string;
  text_color?: string;
  logo?: { uri?: string; alt_text?: string };
  background_image?: { uri?: string };
};
type ShownClaim = { path?: Path; display?: Shown[] };

function credentialOf({ credentialIssuer }: IssuerMetadata, id: string, languages: readonly string[]): OfferedCredential {
  const supported = credentialIssuer.credential_configurations_supported[id] as Record<string, unknown> | undefined;
  if (supported === undefined) throw new Error(`the issuer offers "${id}", which it does not have`);
  // From draft 15 on, what is shown stands in `credential_metadata`.
  const about = (supported['credential_metadata'] ?? supported) as {
    display?: Shown[];
    claims?: ShownClaim[];
  };
  const shown = inLanguage(about.display, languages);
  const claims = Array.isArray(about.claims) ? about.claims : [];
  return {
    configurationId: id,
    format: String(supported['format']),
    type: String(supported['vct'] ?? supported['doctype'] ?? id),
    look: {
      name: shown?.name ?? id,
      ...defined({
        description: shown?.description,
        backgroundColor: shown?.background_color,
        textColor: shown?.text_color,
        logo: pictureOf(shown?.logo),
        backgroundImage: shown?.background_image?.uri,
      }),
    },
    labels: claims.flatMap(({ path, display }) => {
      const name = inLanguage(display, languages)?.name;
      return path === undefined ? [] : [{ path, name: name ?? path.join(' › ') }];
    }),
  };
}

function pictureOf(logo: Shown['logo']): Picture | undefined {
  if (logo?.uri === undefined) return undefined;
  return { uri: logo.uri, ...defined({ altText: logo.alt_text }) };
}

/** The first in a language of the user, else in none, else the first. */
function inLanguage(shown: readonly Shown[] | undefined, languages: readonly string[]): Shown | undefined {
  for (const language of languages) {
    const [wanted] = language.toLowerCase().split('-');
    const found = shown?.find(({ locale }) => locale?.toLowerCase().split('-')[0] === wanted);
    if (found !== undefined) return found;
  }
  return shown?.find(({ locale }) => locale === undefined) ?? shown?.[0];
}
