import type { Role } from '../../domain/clients/role.ts';
import type { CredentialConfiguration } from '../../domain/issuance/configuration.ts';
import { vctOf } from '../../domain/issuance/metadata.ts';
import type { IssuedType } from '../../domain/registrar/coverage.ts';
import type { RegistrationCertificateRequest } from '../../domain/registrar/registration-certificate-request.ts';
import { Failure, invalidInput } from '../../domain/shared/failure.ts';
import { includesProfile } from '../../domain/shared/finding.ts';
import { canonicalJson, type JsonObject } from '../../domain/shared/json.ts';
import type { TenantCaller } from '../caller.ts';
import { needs } from '../needs.ts';
import type { TenantConfiguration } from '../tenant-cache/tenant-configuration.ts';
import { certificateRequirement } from './certificate-requirement.ts';
import { accessChainOf, assertOfSubject } from './certificate-subject.ts';
import type { CheckedCertificate } from './registration-certificate-verifier.ts';
import { RegistrationCertificates } from './registration-certificates.ts';

const PATH = 'registrationCert';

const NOT_REGISTERED =
  'profile eu (ARF 3.0 RPRC_22, ISSU_34b): the issuer has no registration certificate; set registrationCert with POST /issuer/config first';

type IssuedConfiguration = Pick<CredentialConfiguration, 'id' | 'config' | 'vct'>;

/** Provides the registration certificate of the issuer, which states what the tenant may issue. */
export class IssuerRegistration extends needs({ registrationCertificates: RegistrationCertificates }) {
  /**
   * The entry for `issuer_info` of the metadata (ETSI TS 119 472-3 section 4.2.3, ARF 3.0 RPRC_22). The certificate is cached.
   * @returns undefined when the tenant configured none, or issues nothing.
   * @throws Failure when no certificate covers all that is issued.
   */
  async entryFor(tenant: TenantConfiguration, now: Date): Promise<JsonObject | undefined> {
    const request = (await tenant.issuanceConfiguration())?.registrationCert;
    if (request === undefined || request === null) return undefined;
    const issued = typesOf(tenant, await tenant.writtenCredentialConfigurations());
    if (issued.length === 0) return undefined;
    const certificateRequest = await tenant.derive('registration-certificate/issuer', () =>
      certificateRequirement(tenant, { issued }, request),
    );
    const certificate = await this.ports.registrationCertificates.getUsable(tenant, certificateRequest, now);
    const chain = accessChainOf(await tenant.keyChains(), now, undefined);
    if (chain !== undefined) assertOfSubject(certificate, chain, PATH);
    return { format: 'registration_cert', data: certificate.jwt };
  }

  /**
   * Checks that a new issuer configuration covers what the tenant issues.
   * @throws Failure `forbidden` for a caller that may not order a certificate, `invalid_input` at `registrationCert`,
   *   `unavailable` when the registrar does not answer.
   */
  async assertIssuerRegistered(
    { tenant, roles }: TenantCaller,
    request: RegistrationCertificateRequest | null | undefined,
    now: Date,
  ): Promise<void> {
    if (request === undefined || request === null) return;
    const storedRequest = (await tenant.issuanceConfiguration())?.registrationCert;
    if (canonicalJson(request.body ?? null) !== canonicalJson(storedRequest?.body ?? null)) assertMayOrder(roles, request);
    // If nothing is issued yet, a missing registrar would only be noticed with the first type.
    if (request.body !== undefined && (await tenant.registrarConfiguration()) === undefined)
      throw invalidInput(PATH, 'no registrar is configured; send POST /registrar/config first');
    const issued = typesOf(tenant, await tenant.writtenCredentialConfigurations());
    await this.#check(tenant, request, issued, now);
  }

  /**
   * Checks that a new type is registered. Types that are already issued were checked before.
   * @throws Failure as `assertIssuerRegistered`, at the property that names the type.
   */
  async assertTypeRegistered({ tenant, roles }: TenantCaller, configuration: IssuedConfiguration, now: Date): Promise<void> {
    const configurations = await tenant.writtenCredentialConfigurations();
    const typesBefore = typesOf(tenant, configurations);
    const otherConfigurations = configurations.filter(({ id }) => id !== configuration.id);
    const issued = typesOf(tenant, [...otherConfigurations, configuration]);
    const isIssuedAlready = issued.every(({ format, type }) =>
      typesBefore.some((issuedType) => issuedType.format === format && issuedType.type === type),
    );
    const request = (await tenant.issuanceConfiguration())?.registrationCert;
    if (isIssuedAlready || request === undefined || request === null) return;
    assertMayOrder(roles, request);
    try {
      await this.#check(tenant, request, issued, now);
    } catch (error) {
      if (error instanceof Failure && error.code === 'invalid_input') throw invalidInput(typeProperty(configuration), error.message);
      throw error;
    }
  }

  /** @throws Failure `invalid_input` for a type of a tenant that must register before it issues. */
  async assertRegisteredIfRequired({ tenant }: TenantCaller, configuration: IssuedConfiguration): Promise<void> {
    const request = (await tenant.issuanceConfiguration())?.registrationCert;
    const isMissing = request === undefined || request === null;
    if (isMissing && includesProfile(tenant.profile, 'eu')) throw invalidInput(typeProperty(configuration), NOT_REGISTERED);
  }

  async #check(
    tenant: TenantConfiguration,
    request: RegistrationCertificateRequest,
    issued: readonly IssuedType[],
    now: Date,
  ): Promise<void> {
    // Nothing needs to be registered yet.
    if (issued.length === 0 && request.body !== undefined) return;
    const certificate = await this.obtain(tenant, request, issued, now);
    const chain = accessChainOf(await tenant.keyChains(), now, undefined);
    if (certificate !== undefined && chain !== undefined) assertOfSubject(certificate, chain, PATH);
  }

  /** @returns undefined if the registrar is not called. */
  protected async obtain(
    tenant: TenantConfiguration,
    request: RegistrationCertificateRequest,
    issued: readonly IssuedType[],
    now: Date,
  ): Promise<CheckedCertificate | undefined> {
    const certificateRequest = await certificateRequirement(tenant, { issued }, request);
    return this.ports.registrationCertificates.getObtainable(tenant, certificateRequest, now);
  }
}

/** @throws Failure `forbidden` */
function assertMayOrder(roles: readonly Role[], { body }: RegistrationCertificateRequest): void {
  if (body === undefined || roles.includes('registrar:manage')) return;
  throw new Failure('forbidden', 'registrationCert: an order at the registrar requires the role registrar:manage; set id or jwt instead');
}

function typeProperty({ config }: IssuedConfiguration): string {
  return config.format === 'mso_mdoc' ? 'config.docType' : 'vct';
}

function typesOf({ issuer }: TenantConfiguration, configurations: readonly IssuedConfiguration[]): readonly IssuedType[] {
  const types = new Map<string, IssuedType>();
  for (const configuration of configurations) {
    const { format, docType = '' } = configuration.config;
    const type = format === 'mso_mdoc' ? docType : vctOf(configuration as CredentialConfiguration, issuer);
    types.set(`${format} ${type}`, { format, type });
  }
  // Sorted, since another order would order another certificate.
  return [...types.keys()].sort().flatMap((name) => types.get(name) ?? []);
}
