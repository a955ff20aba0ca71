import type { Role } from '../../domain/clients/role.ts';
import type { CredentialConfiguration } from '../../domain/issuance/configuration.ts';
import { vctOf } from '../../domain/issuance/metadata.ts';
import type { IssuedType } from '../../domain/registrar/coverage.ts';
import type { RegistrationCertificateRequest } from '../../domain/registrar/registration-certificate-request.ts';
import { Failure, invalidInput } from '../../domain/shared/failure.ts';
import { holdsTo } from '../../domain/shared/finding.ts';
import { canonicalJson, type JsonObject } from '../../domain/shared/json.ts';
import type { TenantCaller } from '../caller.ts';
import { needs } from '../needs.ts';
import type { TenantConfiguration } from '../tenant-cache/tenant-configuration.ts';
import { accessChainOf, assertOfSubject } from './certificate-subject.ts';
import type { CheckedCertificate } from './registration-certificate-verifier.ts';
import { RegistrationCertificates } from './registration-certificates.ts';
import { wantedCertificate } from './wanted-certificate.ts';

const PATH = 'registrationCert';

const NOT_REGISTERED =
  'profile eu (ARF 3.0 RPRC_22, ISSU_34b): the issuer has no registration certificate; set registrationCert with POST /issuer/config first';

type Issued = Pick<CredentialConfiguration, 'id' | 'config' | 'vct'>;

/** Says to wallets what the tenant may issue: the registration certificate of its issuer. */
export class IssuerRegistration extends needs({ registrationCertificates: RegistrationCertificates }) {
  /**
   * The entry for `issuer_info` of the metadata (ETSI TS 119 472-3 section 4.2.3, ARF 3.0 RPRC_22). Costs nothing once the
   * certificate is there.
   * @returns undefined when the tenant wants none, or issues nothing.
   * @throws Failure when there is none that is good for all that is issued.
   */
  async entryFor(configured: TenantConfiguration, now: Date): Promise<JsonObject | undefined> {
    const request = (await configured.issuanceConfiguration())?.registrationCert;
    if (request === undefined || request === null) return undefined;
    const issued = typesOf(configured, await configured.writtenCredentialConfigurations());
    if (issued.length === 0) return undefined;
    const wanted = await configured.derive('registration-certificate/issuer', () => wantedCertificate(configured, { issued }, request));
    const certificate = await this.ports.registrationCertificates.usable(configured, wanted, now);
    const chain = accessChainOf(await configured.keyChains(), now, undefined);
    if (chain !== undefined) assertOfSubject(certificate, chain, PATH);
    return { format: 'registration_cert', data: certificate.jwt };
  }

  /**
   * Whether an issuer that is about to be saved may issue what the tenant issues.
   * @throws Failure `forbidden` for who may not order a certificate and would, `invalid_input` at `registrationCert`,
   *   `unavailable` when the registrar does not answer.
   */
  async assertIssuerRegistered(
    { configured, roles }: TenantCaller,
    request: RegistrationCertificateRequest | null | undefined,
    now: Date,
  ): Promise<void> {
    if (request === undefined || request === null) return;
    const before = (await configured.issuanceConfiguration())?.registrationCert;
    if (canonicalJson(request.body ?? null) !== canonicalJson(before?.body ?? null)) assertMayOrder(roles, request);
    // Nothing is issued yet, perhaps, and then nobody would find out before the first type.
    if (request.body !== undefined && (await configured.registrarConfiguration()) === undefined)
      throw invalidInput(PATH, 'no registrar is configured; POST /registrar/config comes first');
    const issued = typesOf(configured, await configured.writtenCredentialConfigurations());
    await this.#check(configured, request, issued, now);
  }

  /**
   * Whether a type that is about to be saved is registered. One that is issued already was looked at.
   * @throws Failure as `assertIssuerRegistered`, at the member that names the type.
   */
  async assertTypeRegistered({ configured, roles }: TenantCaller, configuration: Issued, now: Date): Promise<void> {
    const known = await configured.writtenCredentialConfigurations();
    const before = typesOf(configured, known);
    const others = known.filter(({ id }) => id !== configuration.id);
    const issued = typesOf(configured, [...others, configuration]);
    const isKnown = issued.every(({ format, type }) => before.some((one) => one.format === format && one.type === type));
    const request = (await configured.issuanceConfiguration())?.registrationCert;
    if (isKnown || request === undefined || request === null) return;
    assertMayOrder(roles, request);
    try {
      await this.#check(configured, request, issued, now);
    } catch (error) {
      if (error instanceof Failure && error.code === 'invalid_input') throw invalidInput(memberOf(configuration), error.message);
      throw error;
    }
  }

  /** @throws Failure `invalid_input` for a type of a tenant that may not issue without having registered. */
  async assertDemanded({ configured }: TenantCaller, configuration: Issued): Promise<void> {
    const request = (await configured.issuanceConfiguration())?.registrationCert;
    const isMissing = request === undefined || request === null;
    if (isMissing && holdsTo(configured.profile, 'eu')) throw invalidInput(memberOf(configuration), NOT_REGISTERED);
  }

  async #check(
    configured: TenantConfiguration,
    request: RegistrationCertificateRequest,
    issued: readonly IssuedType[],
    now: Date,
  ): Promise<void> {
    // There is nothing to be registered yet.
    if (issued.length === 0 && request.body !== undefined) return;
    const certificate = await this.obtained(configured, request, issued, now);
    const chain = accessChainOf(await configured.keyChains(), now, undefined);
    if (certificate !== undefined && chain !== undefined) assertOfSubject(certificate, chain, PATH);
  }

  /** @returns undefined where nobody is asked. */
  protected async obtained(
    configured: TenantConfiguration,
    request: RegistrationCertificateRequest,
    issued: readonly IssuedType[],
    now: Date,
  ): Promise<CheckedCertificate | undefined> {
    const wanted = await wantedCertificate(configured, { issued }, request);
    return this.ports.registrationCertificates.obtainable(configured, wanted, now);
  }
}

/** @throws Failure `forbidden` */
function assertMayOrder(roles: readonly Role[], { body }: RegistrationCertificateRequest): void {
  if (body === undefined || roles.includes('registrar:manage')) return;
  throw new Failure(
    'forbidden',
    'registrationCert: a certificate is ordered at the registrar with the role registrar:manage; name one by id or jwt',
  );
}

/** What names the type. */
function memberOf({ config }: Issued): string {
  return config.format === 'mso_mdoc' ? 'config.docType' : 'vct';
}

function typesOf({ issuer }: TenantConfiguration, configurations: readonly Issued[]): readonly IssuedType[] {
  const types = new Map<string, IssuedType>();
  for (const configuration of configurations) {
    const { format, docType = '' } = configuration.config;
    const type = format === 'mso_mdoc' ? docType : vctOf(configuration as CredentialConfiguration, issuer);
    types.set(`${format} ${type}`, { format, type });
  }
  // Their order says nothing, and another one would order another certificate.
  return [...types.keys()].sort().flatMap((name) => types.get(name) ?? []);
}
