import { randomUUID } from 'node:crypto';
import { AdminClient } from '../demo/admin-client.ts';
import type { Authorities } from '../demo/authorities.ts';
import type { ServiceUnderTest } from './service.ts';
import { errorReason, FORMATS, type Format, type Profile } from './verdict.ts';

export const PAGE = 'https://shop.example';
const NAMESPACE = 'org.iso.18013.5.1';
const DOC_TYPE = 'org.iso.18013.5.1.mDL';
const VCT = 'urn:eudi:pid:1';
export const COPIES = 2;

/** Claims of every issued credential. */
const PERSON = {
  ...{ given_name: 'Ada', family_name: 'Lovelace', birthdate: '1985-12-10' },
  address: { locality: 'London', country: 'GB' },
  nationalities: ['GB'],
};
const LICENCE = {
  ...{ family_name: 'Lovelace', given_name: 'Ada', birth_date: '1985-12-10' },
  ...{ issue_date: '2026-01-01', expiry_date: '2036-01-01', issuing_country: 'GB' },
  ...{ issuing_authority: 'Ministry', document_number: 'EX-1234567', portrait: 'bm90IGEgcGljdHVyZQ' },
  driving_privileges: [{ vehicle_category_code: 'B', issue_date: '2010-01-01' }],
  ...{ un_distinguishing_sign: 'UK', age_over_18: true },
};

/** The query and its expected result. */
const QUERIES = {
  'dc+sd-jwt': { meta: { vct_values: [VCT] }, claims: [{ path: ['family_name'] }, { path: ['address', 'locality'] }] },
  mso_mdoc: { meta: { doctype_value: DOC_TYPE }, claims: [{ path: [NAMESPACE, 'family_name'] }, { path: [NAMESPACE, 'age_over_18'] }] },
} as const satisfies Record<Format, object>;
export const SHOWN: Readonly<Record<Format, object>> = {
  'dc+sd-jwt': { family_name: 'Lovelace', address: { locality: 'London' } },
  mso_mdoc: { [NAMESPACE]: { family_name: 'Lovelace', age_over_18: true } },
};

/** Under `haip` and `eu` every question by a link needs an address to come back to, and has its answer encrypted. */
export const isStrict = (profile: Profile): boolean => profile !== 'none';

/**
 * `by-two-keys`: credentials and their status list are signed by two keys of one CA. `after-showing`: the wallet presents a
 * credential of the same format first.
 */
const KINDS = ['at-once', 'later', 'by-two-keys', 'after-showing'] as const;
export type IssuedKind = { readonly issued: (typeof KINDS)[number]; readonly format: Format };
export const configurationId = ({ issued, format }: IssuedKind): string => `${issued}-${format === 'mso_mdoc' ? 'mdl' : 'pid'}`;

export const queryIdOf = (format: Format, kind: string): string => `${format.replace('+', '-')}-${kind}`;

export type TrustSetup = {
  readonly authorities: Authorities;
  /** Address of the backend of deferred claims. */
  readonly backend: string;
  /** Additional trusted CAs of credentials, as PEM. */
  readonly anchors?: readonly string[];
};

/** The service rejects the set-up of a tenant, which says nothing about any tool. */
export class SetUpFailure extends Error {}

/** A tenant of the service under test for one wallet and one profile. */
export class TestedTenant {
  readonly id: string;
  readonly profile: Profile;
  readonly admin: AdminClient;
  readonly #service: ServiceUnderTest;

  private constructor(id: string, profile: Profile, service: ServiceUnderTest, admin: AdminClient) {
    this.id = id;
    this.profile = profile;
    this.#service = service;
    this.admin = admin;
  }

  /**
   * @param trust properties of the issuance configuration that name the provider of the wallet.
   * @throws SetUpFailure when the service rejects a part; the tenant is removed then.
   */
  static async open(
    service: ServiceUnderTest,
    profile: Profile,
    trust: Readonly<Record<string, unknown>>,
    surroundings: TrustSetup,
  ): Promise<TestedTenant> {
    const id = `judge-${profile}-${randomUUID().slice(0, 8)}`;
    // Registered before its creation, so that an interruption removes it, too.
    service.tenants.add(id);
    try {
      return await TestedTenant.#make(id, { service, profile }, trust, surroundings);
    } catch (error) {
      await removeTenant(service, id).catch(() => undefined);
      throw new SetUpFailure(`the set-up under ${profile} failed: ${errorReason(error)}`);
    }
  }

  static async #make(
    id: string,
    { service, profile }: { readonly service: ServiceUnderTest; readonly profile: Profile },
    trust: Readonly<Record<string, unknown>>,
    { authorities, backend, anchors = [] }: TrustSetup,
  ): Promise<TestedTenant> {
    const { address, root } = service;
    const roles = ['clients:manage', 'issuance:manage', 'issuance:offer', 'presentation:manage'];
    await root.post('/tenant', {
      ...{ id, name: `Judged under ${profile}`, country: 'GB', statusListConfig: { immediateUpdate: true } },
      roles: [...roles, 'presentation:request', 'registrar:manage'],
      ...(profile !== 'none' && { profile }),
    });
    const { secret } = await root.get<{ secret: string }>(`/client/${id}-admin/secret`);
    const admin = new AdminClient(address, `${id}-admin`, secret);
    const tenant = new TestedTenant(id, profile, service, admin);
    await admin.post('/key-chain', { id: 'further', usages: ['access'] });
    if (profile === 'eu') {
      await admin.post('/registrar/config', authorities.registrar.login());
      for (const keyChainId of ['access', 'further']) await admin.post('/registrar/access-certificate', { keyChainId });
    }
    await tenant.#configure(trust, backend, anchors);
    return tenant;
  }

  /** The published version, which needs no token. */
  async trustList(): Promise<string> {
    const answer = await fetch(`${this.#service.address}/${this.id}/trust-list/issuers`);
    return answer.text();
  }

  close(): Promise<unknown> {
    return removeTenant(this.#service, this.id);
  }

  async #configure(trust: Readonly<Record<string, unknown>>, backend: string, anchors: readonly string[]): Promise<void> {
    const trustAnchors = [{ keyChainId: 'issuer' }, ...anchors.map((certificate) => ({ certificate }))];
    const issuer = { id: 'issuer', usages: ['signing'], country: 'GB', organization: 'Ministry of Examples' };
    await this.admin.post('/key-chain', issuer);
    await this.admin.post('/issuer/config', {
      display: [{ name: 'Ministry of Examples', locale: 'en' }],
      batchSize: COPIES,
      dPopRequired: true,
      ...(isStrict(this.profile) && trust),
      ...(this.profile === 'eu' && { registrationCert: { body: {} } }),
    });
    for (const format of FORMATS) {
      await this.#question(queryIdOf(format, 'sealed'), format, { trustAnchors });
      await this.#question(queryIdOf(format, 'posted'), format, { requestUriMethod: 'post', redirectUri: `${PAGE}/done` });
      await this.#question(queryIdOf(format, 'unsigned'), format, { dcApiRequest: 'unsigned', trustAnchors });
      const several = { dcApiRequest: 'multisigned', furtherAccessKeyChainIds: ['further'] };
      await this.#question(queryIdOf(format, 'several'), format, { ...several, trustAnchors });
      await this.#question(queryIdOf(format, 'back'), format, { redirectUri: `${PAGE}/done`, trustAnchors });
      if (!isStrict(this.profile)) await this.#question(queryIdOf(format, 'plain'), format, { responseMode: 'direct_post', trustAnchors });
      for (const issued of KINDS) await this.admin.post('/issuer/credentials', this.#credential({ issued, format }, backend));
    }
    const info = { name: 'Ministry of Examples', country: 'GB', streetAddress: '1 Whitehall', uri: PAGE };
    const entity = { type: 'internal', issuerKeyChainId: 'issuer', revocationKeyChainId: 'issuer', info };
    await this.admin.post('/trust-list', { id: 'issuers', entities: [entity] });
  }

  #credential({ issued, format }: IssuedKind, backend: string): object {
    const id = configurationId({ issued, format });
    const isMdoc = format === 'mso_mdoc';
    const options = [{ details: ['once_only'], batch_size: COPIES, reissue_trigger_unused: 1 }];
    const keyChainId = issued === 'by-two-keys' ? 'signing' : 'issuer';
    const base = { id, keyChainId, statusManagement: true, lifeTime: 30 * 86_400 };
    const display = [{ name: isMdoc ? 'Licence' : 'Person ID', locale: 'en' }];
    return {
      ...base,
      ...(this.profile === 'eu' && { credentialReusePolicy: { id: 'arf_annex_ii', options } }),
      ...(issued === 'after-showing' && {
        iaeActions: [{ type: 'openid4vp_presentation', presentationConfigId: queryIdOf(format, 'sealed') }],
      }),
      ...(issued === 'later' && { claimsWebhook: { url: `${backend}/claims` } }),
      ...(isMdoc
        ? {
            config: {
              ...{ format, scope: id, docType: DOC_TYPE, namespace: NAMESPACE, display },
              ...(issued !== 'later' && { claimsByNamespace: { [NAMESPACE]: LICENCE } }),
            },
          }
        : {
            ...{ config: { format, scope: id, display }, vct: VCT, keyBinding: true },
            ...(issued !== 'later' && { claims: PERSON }),
            disclosureFrame: { _sd: Object.keys(PERSON), address: { _sd: ['locality', 'country'] } },
          }),
    };
  }

  #question(id: string, format: Format, overrides: object): Promise<unknown> {
    const { meta, claims } = QUERIES[format];
    return this.admin.post('/verifier/config', {
      ...{ id, values: 'requested', expectedOrigins: [PAGE] },
      dcql_query: { credentials: [{ id: 'asked', format, meta, claims }] },
      ...(this.profile === 'eu' && { registrationCert: { body: {} } }),
      ...overrides,
    });
  }
}

async function removeTenant({ root, tenants }: ServiceUnderTest, id: string): Promise<void> {
  await root.delete(`/tenant/${id}`);
  tenants.delete(id);
}

/** The deferred claims of the backend. */
export const CLAIMS: Readonly<Record<Format, object>> = { 'dc+sd-jwt': PERSON, mso_mdoc: { [NAMESPACE]: LICENCE } };
