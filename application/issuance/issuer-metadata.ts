import { hash } from 'node:crypto';
import { authorizationServerMetadata, chainedAsMetadata } from '../../domain/issuance/authorization-server-metadata.ts';
import { hasBuiltInServer } from '../../domain/issuance/issuance-configuration.ts';
import { localeListsOf, narrowTo, onlyLocaleOf, pickLocale } from '../../domain/issuance/localized-metadata.ts';
import { issuerMetadata } from '../../domain/issuance/metadata.ts';
import { metadataSigner } from '../../domain/issuance/metadata-signer.ts';
import type { StoredKey } from '../../domain/keys/signing-key.ts';
import { defined } from '../../domain/shared/defined.ts';
import { Failure } from '../../domain/shared/failure.ts';
import { includesProfile } from '../../domain/shared/finding.ts';
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
  /** The language of its displays; absent if it contains all languages. */
  readonly language?: string;
};

/** Public metadata documents of a tenant, built once per change of the configuration. */
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
    const tenant = await this.ports.tenantConfigurations.readServing(tenantId);
    if (kind === 'jwks') return this.#keySet(tenant);
    return tenant.derive(`metadata/${kind}`, async () => JSON.stringify(await this.#build(tenant, kind)));
  }

  /**
   * Credential issuer metadata (OpenID4VCI 1.0 section 12.2.2).
   * @param preferences `signed` has an effect only if there is a signing key; `languages` are ranges, best first.
   * @throws Failure `not_found` for an unknown or suspended tenant.
   */
  async issuer(
    tenantId: TenantId,
    preferences: { readonly signed: boolean; readonly languages: readonly string[] },
  ): Promise<IssuerDocument> {
    const tenant = await this.ports.tenantConfigurations.readServing(tenantId);
    const metadataWithAllLocales = await tenant.derive('metadata/issuer', () => this.#issuerMetadata(tenant));
    const lists = tenant.derive('metadata/locales', () => localeListsOf(metadataWithAllLocales));
    const chosenLocales = lists.map((locales) => pickLocale(locales, preferences.languages) ?? '*');
    const registered = await this.#registered(tenant);
    const isNarrow = chosenLocales.some((locale) => locale !== '*');
    const variant = `${isNarrow ? chosenLocales.join() : '*'} ${registered?.name ?? ''}`;
    const metadata = tenant.derive(`metadata/issuer/${variant}`, () => {
      const narrowed = isNarrow ? narrowTo(metadataWithAllLocales, preferences.languages) : metadataWithAllLocales;
      const language = isNarrow ? onlyLocaleOf(narrowed) : undefined;
      const document = registered === undefined ? narrowed : { ...narrowed, issuer_info: [registered.entry] };
      return { document, text: JSON.stringify(document), ...defined({ language }) };
    });
    const { language } = metadata;
    // Earlier drafts embed the signed form in the unsigned document.
    const isEmbedded = !preferences.signed && includesProfile(tenant.profile, 'eu');
    const jwt = preferences.signed || isEmbedded ? await signedMetadata(this.ports, tenant, variant, metadata.document) : undefined;
    if (isEmbedded && jwt !== undefined) {
      const text = JSON.stringify({ ...metadata.document, signed_metadata: jwt });
      return { text, signed: false, ...defined({ language }) };
    }
    return { text: jwt ?? metadata.text, signed: jwt !== undefined, ...defined({ language }) };
  }

  /**
   * The registration certificate, which expires and is renewed. If it is unavailable, the metadata are published without it: wallets that
   * do not require it can continue.
   */
  async #registered(tenant: TenantConfiguration) {
    const { issuerRegistration, clock, log } = this.ports;
    try {
      const entry = await issuerRegistration.entryFor(tenant, clock.now());
      return entry && { entry, name: hash('sha256', String(entry['data']), 'base64url') };
    } catch (error) {
      if (!(error instanceof Failure)) throw error;
      const logFields = { tenant: tenant.tenantId, reason: error.message };
      // Logged once per reason, since metadata are requested often.
      tenant.derive(`metadata/unregistered/${error.message}`, () =>
        log.warn('metadata of an issuer are published without its registration certificate', logFields),
      );
      return undefined;
    }
  }

  /** @throws Failure `not_found` for a configuration whose type metadata are hosted elsewhere. */
  async typeMetadata(tenantId: TenantId, configurationId: string): Promise<string> {
    const tenant = await this.ports.tenantConfigurations.readServing(tenantId);
    const configuration = await tenant.credentialConfiguration(configurationId);
    const hosted = configuration && hostedType(tenant, configuration);
    if (hosted === undefined) throw new Failure('not_found', 'unknown credential type');
    return hosted.text;
  }

  /** The JSON Schema of the claims. @throws Failure `not_found` for a configuration without one. */
  async schema(tenantId: TenantId, configurationId: string): Promise<string> {
    const tenant = await this.ports.tenantConfigurations.readServing(tenantId);
    const { schema } = (await tenant.credentialConfiguration(configurationId)) ?? {};
    if (schema === null || schema === undefined) throw new Failure('not_found', 'unknown schema');
    return JSON.stringify(schema);
  }

  /** Former keys expire one after the other, so their number identifies the set. */
  async #keySet(tenant: TenantConfiguration): Promise<string> {
    const keys = publicKeys(await tenant.keyChains(), this.ports.clock.now());
    return tenant.derive(`metadata/jwks/${keys.length}`, () => JSON.stringify(keySet(keys)));
  }

  async #build(tenant: TenantConfiguration, kind: Exclude<MetadataKind, 'jwks'>): Promise<JsonObject> {
    const issuance = await tenant.issuance();
    const parts = { issuer: tenant.issuer, issuance, configurations: await tenant.credentialConfigurations(), profile: tenant.profile };
    if (kind === 'chained-as') {
      if (issuance.chainedAs?.enabled !== true) throw new Failure('not_found', 'unknown authorization server');
      return chainedAsMetadata(parts);
    }
    if (!hasBuiltInServer(issuance)) throw new Failure('not_found', 'unknown authorization server');
    const aggregation = (await tenant.tenant()).statusListConfig?.enableAggregation ?? true;
    return authorizationServerMetadata({ ...parts, aggregation });
  }

  async #issuerMetadata(tenant: TenantConfiguration): Promise<JsonObject> {
    const chains = await tenant.keyChains();
    return issuerMetadata({
      issuer: tenant.issuer,
      issuance: await tenant.issuance(),
      configurations: await tenant.credentialConfigurations(),
      signingAlgorithm: ({ keyChainId }) =>
        chains.find(({ id, usages }) => (keyChainId === null || keyChainId === undefined ? usages.includes('signing') : id === keyChainId))
          ?.active.key.handle.algorithm,
      encryptionKeys: this.ports.encryption
        .requestKeys(tenant.tenantId)
        .slice(0, 1)
        .map(({ publicJwk }) => publicJwk),
    });
  }
}

function keySet(keys: readonly StoredKey[]): object {
  return { keys: keys.map(({ publicJwk }) => ({ ...publicJwk, kid: thumbprint(publicJwk), use: 'sig', alg: algorithmOf(publicJwk) })) };
}

type Ports = { readonly kms: Kms; readonly clock: Clock; readonly log: Log };

/** The specification spells the type `openidvci`, not `openid4vci`. */
const TYPE = 'openidvci-issuer-metadata+jwt';
const LIFETIME_SECONDS = 24 * 3600;
/** Ensures that a document is valid for at least half a day when it is served. */
const RENEWAL_MS = 12 * 3600 * 1000;

type SignedMetadataCache = { current?: { readonly text: Promise<string>; readonly renewAt: number } };

/**
 * Issuer metadata as a JWT (OpenID4VCI 1.0 section 12.2.3), renewed after half of its lifetime.
 * @param variant distinguishes documents of one tenant.
 * @param metadata properties that become claims of the same name.
 * @returns undefined when the tenant has no key to sign with at the moment.
 */
async function signedMetadata(
  { kms, clock, log }: Ports,
  tenant: TenantConfiguration,
  variant: string,
  metadata: JsonObject,
): Promise<string | undefined> {
  const now = clock.now();
  const chain = metadataSigner(await tenant.keyChains(), tenant.profile, now);
  if (chain?.usages.includes('access') !== true) {
    // Logged once per change of the configuration, since metadata are requested often.
    tenant.derive('metadata/no-access-key', () =>
      log.warn('no access certificate signs the metadata of an issuer, so European wallets reject them', {
        tenant: tenant.tenantId,
        keyChain: chain?.id ?? null,
      }),
    );
  }
  if (chain === undefined) return undefined;
  const cache = tenant.derive(`metadata/signed/${variant}`, (): SignedMetadataCache => ({}));
  if (cache.current !== undefined && now.getTime() < cache.current.renewAt) return cache.current.text;

  const iat = Math.floor(now.getTime() / 1000);
  const payload = { ...metadata, sub: metadata['credential_issuer'], iat, exp: iat + LIFETIME_SECONDS };
  const text = signJwt(kms, { chain, typ: TYPE, payload });
  const current = { text, renewAt: now.getTime() + RENEWAL_MS };
  cache.current = current;
  text.catch(() => {
    if (cache.current === current) delete cache.current;
  });
  return text;
}
