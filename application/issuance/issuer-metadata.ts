import { hash } from 'node:crypto';
import { authorizationServerMetadata, chainedAsMetadata } from '../../domain/issuance/authorization-server-metadata.ts';
import { hasBuiltIn } from '../../domain/issuance/issuance-configuration.ts';
import { localeListsOf, narrowTo, onlyLocaleOf, pickLocale } from '../../domain/issuance/localized-metadata.ts';
import { issuerMetadata } from '../../domain/issuance/metadata.ts';
import { metadataSigner } from '../../domain/issuance/metadata-signer.ts';
import type { StoredKey } from '../../domain/keys/signing-key.ts';
import { defined } from '../../domain/shared/defined.ts';
import { Failure } from '../../domain/shared/failure.ts';
import { holdsTo } from '../../domain/shared/finding.ts';
import type { TenantId } from '../../domain/shared/ids.ts';
import type { JsonObject } from '../../domain/shared/json.ts';
import { algorithmOf, thumbprint } from '../../domain/shared/jwk.ts';
import { signJwt } from '../keys/sign-jwt.ts';
import { needs } from '../needs.ts';
import { publicKeys } from '../oauth/wallet-tokens.ts';
import { Clock } from '../ports/clock.ts';
import { Encryption } from '../ports/encryption.ts';
import { Kms } from '../ports/kms.ts';
import { Log } from '../ports/log.ts';
import { IssuerRegistration } from '../registrar/issuer-registration.ts';
import type { TenantConfiguration } from '../tenant-cache/tenant-configuration.ts';
import { TenantConfigurations } from '../tenant-cache/tenant-configurations.ts';
import { hostedType } from '../type-metadata/hosted-type.ts';

export type MetadataKind = 'authorization-server' | 'chained-as' | 'jwks';

export type IssuerDocument = {
  readonly text: string;
  readonly signed: boolean;
  /** The one language of its displays; absent when they are in all of theirs. */
  readonly language?: string;
};

/** Public documents of a tenant's issuer; built once per change of the configuration. */
export class GetIssuerMetadata extends needs({
  tenantConfigurations: TenantConfigurations,
  clock: Clock,
  kms: Kms,
  encryption: Encryption,
  log: Log,
  issuerRegistration: IssuerRegistration,
}) {
  /**
   * @returns JSON text.
   * @throws Failure `not_found` for an unknown or suspended tenant, and for a server that is not enabled.
   */
  async execute(tenantId: TenantId, kind: MetadataKind): Promise<string> {
    const configured = await this.ports.tenantConfigurations.serving(tenantId);
    if (kind === 'jwks') return this.#keySet(configured);
    return configured.derive(`metadata/${kind}`, async () => JSON.stringify(await this.#build(configured, kind)));
  }

  /**
   * Credential issuer metadata (OpenID4VCI 1.0 section 12.2.2).
   * @param wanted `signed` is granted while there is a key for it; `languages` are ranges, best first.
   * @throws Failure `not_found` for an unknown or suspended tenant.
   */
  async issuer(tenantId: TenantId, wanted: { readonly signed: boolean; readonly languages: readonly string[] }): Promise<IssuerDocument> {
    const configured = await this.ports.tenantConfigurations.serving(tenantId);
    const whole = await configured.derive('metadata/issuer', () => this.#issuerMetadata(configured));
    const lists = configured.derive('metadata/locales', () => localeListsOf(whole));
    const chosen = lists.map((locales) => pickLocale(locales, wanted.languages) ?? '*');
    const registered = await this.#registered(configured);
    const isNarrow = chosen.some((locale) => locale !== '*');
    const variant = `${isNarrow ? chosen.join() : '*'} ${registered?.name ?? ''}`;
    const metadata = configured.derive(`metadata/issuer/${variant}`, () => {
      const narrow = isNarrow ? narrowTo(whole, wanted.languages) : whole;
      const language = isNarrow ? onlyLocaleOf(narrow) : undefined;
      const document = registered === undefined ? narrow : { ...narrow, issuer_info: [registered.entry] };
      return { document, text: JSON.stringify(document), ...defined({ language }) };
    });
    const { language } = metadata;
    // Wallets of drafts look for the signed form inside the other one.
    const isInside = !wanted.signed && holdsTo(configured.profile, 'eu');
    const jwt = wanted.signed || isInside ? await signedMetadata(this.ports, configured, variant, metadata.document) : undefined;
    if (isInside && jwt !== undefined) {
      const text = JSON.stringify({ ...metadata.document, signed_metadata: jwt });
      return { text, signed: false, ...defined({ language }) };
    }
    return { text: jwt ?? metadata.text, signed: jwt !== undefined, ...defined({ language }) };
  }

  /**
   * The registration certificate, which ends and is issued anew. Metadata without it are better than none: wallets that do not
   * need it go on.
   */
  async #registered(configured: TenantConfiguration) {
    const { issuerRegistration, clock, log } = this.ports;
    try {
      const entry = await issuerRegistration.entryFor(configured, clock.now());
      return entry && { entry, name: hash('sha256', String(entry['data']), 'base64url') };
    } catch (error) {
      if (!(error instanceof Failure)) throw error;
      const about = { tenant: configured.tenantId, reason: error.message };
      // Once per reason: wallets ask often.
      configured.derive(`metadata/unregistered/${error.message}`, () =>
        log.warn('metadata of an issuer go out without its registration certificate', about),
      );
      return undefined;
    }
  }

  /** @throws Failure `not_found` for a configuration whose type is described elsewhere. */
  async typeMetadata(tenantId: TenantId, configurationId: string): Promise<string> {
    const configured = await this.ports.tenantConfigurations.serving(tenantId);
    const configuration = await configured.credentialConfiguration(configurationId);
    const hosted = configuration && hostedType(configured, configuration);
    if (hosted === undefined) throw new Failure('not_found', 'unknown credential type');
    return hosted.text;
  }

  /** The JSON Schema that claims have to fit. @throws Failure `not_found` for a configuration without one. */
  async schema(tenantId: TenantId, configurationId: string): Promise<string> {
    const configured = await this.ports.tenantConfigurations.serving(tenantId);
    const { schema } = (await configured.credentialConfiguration(configurationId)) ?? {};
    if (schema === null || schema === undefined) throw new Failure('not_found', 'unknown schema');
    return JSON.stringify(schema);
  }

  /** Former keys leave as time goes by, one after the other, so their number says which ones are there. */
  async #keySet(configured: TenantConfiguration): Promise<string> {
    const keys = publicKeys(await configured.keyChains(), this.ports.clock.now());
    return configured.derive(`metadata/jwks/${keys.length}`, () => JSON.stringify(keySet(keys)));
  }

  async #build(configured: TenantConfiguration, kind: Exclude<MetadataKind, 'jwks'>): Promise<JsonObject> {
    const issuance = await configured.issuance();
    const parts = {
      issuer: configured.issuer,
      issuance,
      configurations: await configured.credentialConfigurations(),
      profile: configured.profile,
    };
    if (kind === 'chained-as') {
      if (issuance.chainedAs?.enabled !== true) throw new Failure('not_found', 'unknown authorization server');
      return chainedAsMetadata(parts);
    }
    if (!hasBuiltIn(issuance)) throw new Failure('not_found', 'unknown authorization server');
    const aggregation = (await configured.tenant()).statusListConfig?.enableAggregation ?? true;
    return authorizationServerMetadata({ ...parts, aggregation });
  }

  async #issuerMetadata(configured: TenantConfiguration): Promise<JsonObject> {
    const chains = await configured.keyChains();
    return issuerMetadata({
      issuer: configured.issuer,
      issuance: await configured.issuance(),
      configurations: await configured.credentialConfigurations(),
      signingAlgorithm: ({ keyChainId }) =>
        chains.find(({ id, usages }) => (keyChainId === null || keyChainId === undefined ? usages.includes('signing') : id === keyChainId))
          ?.active.key.handle.algorithm,
      encryptionKeys: this.ports.encryption
        .requestKeys(configured.tenantId)
        .slice(0, 1)
        .map(({ publicJwk }) => publicJwk),
    });
  }
}

/** Keys of access tokens (RFC 7517). */
function keySet(keys: readonly StoredKey[]): object {
  return {
    keys: keys.map(({ publicJwk }) => ({ ...publicJwk, kid: thumbprint(publicJwk), use: 'sig', alg: algorithmOf(publicJwk) })),
  };
}

type Ports = { readonly kms: Kms; readonly clock: Clock; readonly log: Log };

/** Not `openid4vci-…`: the specification spells it so. */
const TYPE = 'openidvci-issuer-metadata+jwt';
const LIFETIME_SECONDS = 24 * 3600;
/** A reader of the document has at least half a day with it. */
const RENEWAL_MS = 12 * 3600 * 1000;

type Kept = { current?: { readonly text: Promise<string>; readonly renewAt: number } };

/**
 * Issuer metadata as a JWT (OpenID4VCI 1.0 section 12.2.3), signed anew when half of its life is over.
 * @param variant tells documents of one tenant apart.
 * @param metadata whose members become claims of the same name.
 * @returns undefined when the tenant has no key to sign with at the moment.
 */
async function signedMetadata(
  { kms, clock, log }: Ports,
  configured: TenantConfiguration,
  variant: string,
  metadata: JsonObject,
): Promise<string | undefined> {
  const now = clock.now();
  const chain = metadataSigner(await configured.keyChains(), configured.profile, now);
  if (chain?.usages.includes('access') !== true) {
    // Once per change of the configuration: wallets ask often.
    configured.derive('metadata/no-access-key', () =>
      log.warn('no access certificate signs the metadata of an issuer, so European wallets refuse them', {
        tenant: configured.tenantId,
        keyChain: chain?.id ?? null,
      }),
    );
  }
  if (chain === undefined) return undefined;
  const kept = configured.derive(`metadata/signed/${variant}`, (): Kept => ({}));
  if (kept.current !== undefined && now.getTime() < kept.current.renewAt) return kept.current.text;

  const iat = Math.floor(now.getTime() / 1000);
  const payload = { ...metadata, sub: metadata['credential_issuer'], iat, exp: iat + LIFETIME_SECONDS };
  const text = signJwt(kms, { chain, typ: TYPE, payload });
  const current = { text, renewAt: now.getTime() + RENEWAL_MS };
  kept.current = current;
  text.catch(() => {
    if (kept.current === current) delete kept.current;
  });
  return text;
}
