import { authorityKeys, type Signer, signerOf } from './certificates.ts';
import type { JsonObject, Path } from './claims.ts';
import type { HolderKey } from './keys.ts';
import { type Mdoc, readMdoc, verifyMdoc } from './mdoc.ts';
import { holderClaims, readSdJwt, type SdJwt, verifySdJwt } from './sd-jwt.ts';

export type CardFormat = 'dc+sd-jwt' | 'mso_mdoc';

/** How a card looks, in colours of CSS and addresses of pictures that its issuer chose. */
export type Look = {
  readonly name: string;
  readonly description?: string;
  readonly backgroundColor?: string;
  readonly textColor?: string;
  readonly logo?: Picture;
  readonly backgroundImage?: string;
};
export type Picture = { readonly uri: string; readonly altText?: string };
export type Label = { readonly path: Path; readonly name: string };

/** A credential in the wallet. */
export type StoredCredential = {
  /** Made by the wallet. */
  readonly id: string;
  readonly configurationId: string;
  readonly format: CardFormat;
  /** The `vct`, or the document type. */
  readonly type: string;
  readonly issuer: { readonly identifier: string; readonly name: string; readonly logo?: Picture };
  readonly look: Look;
  /** Names of claims for a person. */
  readonly labels: readonly Label[];
  /** What it says about its holder, as a tree; of an mdoc by namespace. */
  readonly claims: JsonObject;
  /** Paths of what can be left out when it is shown. */
  readonly disclosable: readonly Path[];
  readonly validity: { readonly issued?: string; readonly from?: string; readonly until?: string };
  /** Its place in a status list. */
  readonly status?: { readonly uri: string; readonly index: number };
  readonly signer?: Signer;
  /** Key identifiers of the authorities above its signer, in base64url. */
  readonly authorities: readonly string[];
  readonly text: string;
  readonly holder: HolderKey;
};

export type CardSource = Pick<StoredCredential, 'configurationId' | 'issuer' | 'look' | 'labels' | 'text' | 'holder'>;

/** @throws Error when its issuer's certificate did not sign it. */
export async function cardOf(source: CardSource): Promise<StoredCredential> {
  const content = source.text.includes('~') ? await sdJwtCard(source.text) : await mdocCard(source.text);
  return { id: crypto.randomUUID(), ...source, ...content };
}

async function sdJwtCard(text: string) {
  const sdJwt = await readSdJwt(text);
  await verifySdJwt(sdJwt);
  const { claims, header, disclosures } = sdJwt;
  const chain = Array.isArray(header['x5c']) ? header['x5c'].map(String) : [];
  return {
    format: 'dc+sd-jwt' as const,
    type: String(claims['vct']),
    claims: holderClaims(sdJwt),
    disclosable: disclosures.map(({ path }) => path),
    validity: validityOf(sdJwt),
    ...statusOf(claims['status']),
    ...chainOf(chain),
  };
}

async function mdocCard(text: string) {
  const mdoc = readMdoc(text);
  await verifyMdoc(mdoc);
  const { docType, claims, chain } = mdoc;
  return {
    format: 'mso_mdoc' as const,
    type: docType,
    claims,
    disclosable: Object.entries(claims).flatMap(([namespace, elements]) =>
      Object.keys(elements as JsonObject).map((name) => [namespace, name]),
    ),
    validity: mdocValidity(mdoc),
    ...statusOf(mdoc.status),
    ...chainOf(chain),
  };
}

function chainOf(chain: readonly string[]) {
  const [leaf] = chain;
  return {
    ...(leaf !== undefined && { signer: signerOf(leaf) }),
    authorities: authorityKeys(chain),
  };
}

function validityOf({ claims }: SdJwt): StoredCredential['validity'] {
  const at = (name: string) => (typeof claims[name] === 'number' ? new Date(claims[name] * 1000).toISOString() : undefined);
  return defined({ issued: at('iat'), from: at('nbf'), until: at('exp') });
}

function mdocValidity({ issuerSigned }: Mdoc): StoredCredential['validity'] {
  const { signed, validFrom, validUntil } = issuerSigned.issuerAuth.mobileSecurityObject.validityInfo;
  return { issued: signed.toISOString(), from: validFrom.toISOString(), until: validUntil.toISOString() };
}

function statusOf(status: unknown): Pick<StoredCredential, 'status'> {
  const { status_list: list } = (status ?? {}) as { status_list?: { uri?: unknown; idx?: unknown } };
  if (typeof list?.uri !== 'string' || typeof list.idx !== 'number') return {};
  return { status: { uri: list.uri, index: list.idx } };
}

/** Without the members that are undefined. */
export function defined<T extends object>(members: T): { [K in keyof T]?: Exclude<T[K], undefined> } {
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined)) as never;
}
