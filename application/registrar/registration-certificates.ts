import { LRUCache } from 'lru-cache';
import { SYSTEM } from '../../domain/audit/audit-entry.ts';
import type { KeyChain } from '../../domain/keys/key-chain.ts';
import { RegistrationCertificateRefusal, type StoredRegistrationCertificate } from '../../domain/registrar/registration-certificate.ts';
import { registrationRequestFor } from '../../domain/registrar/registration-certificate-request.ts';
import { Failure, invalidInput } from '../../domain/shared/failure.ts';
import type { JsonObject } from '../../domain/shared/json.ts';
import type { PresentationConfigurationBody } from '../../domain/verification/configuration.ts';
import { needs } from '../needs.ts';
import { Registrar } from '../ports/registrar.ts';
import { Store } from '../ports/store.ts';
import { boundedBytes } from '../tenant-cache/cache-memory.ts';
import { SingleFlight } from '../tenant-cache/single-flight.ts';
import type { TenantConfiguration } from '../tenant-cache/tenant-configuration.ts';
import { assertCurrent } from '../transactions/attempt.ts';
import { OutdatedTenantError } from '../transactions/tenant-transaction.ts';
import {
  type CertificateRequirement,
  certificateRequirement,
  isUsable,
  type UsableCertificate,
  usableFrom,
} from './certificate-requirement.ts';
import { accessChainOf, assertOfSubject, assertOfUse } from './certificate-subject.ts';
import { obtainFromRegistrar } from './obtain-from-registrar.ts';
import { registrarFailure } from './registrar-failures.ts';
import { type CheckedCertificate, RegistrationCertificateVerifier } from './registration-certificate-verifier.ts';

const PATH = 'registrationCert';
/** Limit of stored certificates per tenant; the oldest are removed. */
const MAX_PER_TENANT = 200;
const MAX_USABLE_BYTES = 16 * 1024 * 1024;
const MAX_FAILURE_BYTES = 2 * 1024 * 1024;
/** Size of an error with its stack. */
const FAILURE_BYTES = 3_000;
/** Pause after the registrar did not answer, */
const OUTAGE_MS = 15_000;
/** and after an unusable certificate, since the registrar would issue another one with every request. */
const REFUSAL_MS = 5 * 60 * 1000;

type Configuration = Pick<PresentationConfigurationBody, 'id' | 'dcql_query' | 'registrationCert' | 'purpose'>;

/** `save`: retries regardless of earlier failures. `use`: the cached tenant may turn out to be out of date. */
type Occasion = 'save' | 'use';

type CertificateLookUp = {
  readonly tenant: TenantConfiguration;
  readonly certificateRequest: CertificateRequirement;
  readonly now: Date;
  readonly occasion: Occasion;
};

/** Provides the registration certificates of presentation configurations, which state what the tenant may request. */
export class RegistrationCertificates extends needs({
  store: Store,
  registrar: Registrar,
  registrationCertificateVerifier: RegistrationCertificateVerifier,
}) {
  readonly #usable = new LRUCache<string, UsableCertificate>(boundedBytes(MAX_USABLE_BYTES));
  readonly #failures = new LRUCache<string, { readonly failure: Failure; readonly retryAt: number }>(
    boundedBytes(MAX_FAILURE_BYTES, () => FAILURE_BYTES),
  );
  readonly #flights = new SingleFlight<UsableCertificate>();

  /**
   * The entry for `verifier_info` (ETSI TS 119 472-2 section 6.3.2.2). The certificate is cached.
   * @param configuration of `tenant`.
   * @param chain that signs the request; undefined for an unsigned one.
   * @returns undefined when the configuration has none.
   * @throws Failure when no certificate covers the request, which is never created without one.
   */
  async entryFor(
    tenant: TenantConfiguration,
    configuration: Configuration,
    chain: KeyChain | undefined,
    now: Date,
  ): Promise<JsonObject | undefined> {
    const { registrationCert: request, dcql_query: query, purpose } = configuration;
    if (request === undefined || request === null) return undefined;
    const certificateRequest = await tenant.derive(`registration-certificate/${configuration.id}`, () =>
      certificateRequirement(tenant, { query }, registrationRequestFor(request, purpose)),
    );
    const certificate = await this.getUsable(tenant, certificateRequest, now);
    if (chain !== undefined) assertOfSubject(certificate, chain, PATH);
    // An ordered certificate contains the purpose of the order.
    if (request.body === undefined) assertOfUse(tenant, certificate, purpose);
    return { format: 'registration_cert', data: certificate.jwt };
  }

  /**
   * Checks that a new configuration can be used.
   * @throws Failure `invalid_input` at `registrationCert`, `unavailable` when the registrar does not answer.
   */
  async assertUsable(tenant: TenantConfiguration, configuration: PresentationConfigurationBody, now: Date): Promise<void> {
    const { registrationCert: request, dcql_query: query, purpose } = configuration;
    if (request === undefined || request === null) return;
    const certificateRequest = await certificateRequirement(tenant, { query }, registrationRequestFor(request, purpose));
    const certificate = await this.getObtainable(tenant, certificateRequest, now);
    const chains = await tenant.keyChains();
    for (const id of [configuration.accessKeyChainId, ...(configuration.furtherAccessKeyChainIds ?? [])]) {
      const chain = accessChainOf(chains, now, id);
      if (chain !== undefined) assertOfSubject(certificate, chain, PATH);
    }
    // An ordered certificate contains the purpose of the order.
    if (request.body === undefined) assertOfUse(tenant, certificate, purpose);
  }

  /** @throws Failure when no certificate satisfies the request. */
  async getUsable(tenant: TenantConfiguration, certificateRequest: CertificateRequirement, now: Date): Promise<CheckedCertificate> {
    return (await this.#get({ tenant, certificateRequest, now, occasion: 'use' })).certificate;
  }

  /** Like `usable`, for a configuration to be saved: earlier failures are retried. @throws Failure */
  async getObtainable(tenant: TenantConfiguration, certificateRequest: CertificateRequirement, now: Date): Promise<CheckedCertificate> {
    return (await this.#resolveOnce({ tenant, certificateRequest, now, occasion: 'save' })).certificate;
  }

  async #get(lookUp: CertificateLookUp): Promise<UsableCertificate> {
    const { now } = lookUp;
    const name = nameOf(lookUp);
    const cached = this.#usable.get(name);
    if (cached !== undefined && isUsable(cached, now)) return cached;
    const failed = this.#failures.get(name);
    if (failed !== undefined && now.getTime() < failed.retryAt) throw failed.failure;
    return this.#resolveOnce(lookUp);
  }

  #resolveOnce(lookUp: CertificateLookUp): Promise<UsableCertificate> {
    const { occasion, now } = lookUp;
    const name = nameOf(lookUp);
    return this.#flights.run(`${name} ${occasion}`, async () => {
      try {
        const usable = await this.#resolve(lookUp);
        this.#usable.set(name, usable);
        this.#failures.delete(name);
        return usable;
      } catch (error) {
        // A rejected save changes neither the cache of requests nor their retry pause.
        if (occasion === 'use' && error instanceof Failure && !(error instanceof OutdatedTenantError)) {
          const restMs = error.code === 'unavailable' ? OUTAGE_MS : REFUSAL_MS;
          this.#failures.set(name, { failure: error, retryAt: now.getTime() + restMs });
        }
        throw error;
      }
    });
  }

  async #resolve(lookUp: CertificateLookUp): Promise<UsableCertificate> {
    const { tenant, certificateRequest, occasion } = lookUp;
    const { jwt, id } = certificateRequest.request;
    if (jwt !== undefined) return this.#accept(lookUp, jwt);
    // A certificate that an administrator refers to is looked up again, since it may have been revoked.
    const storedCertificate = occasion === 'save' && id !== undefined ? undefined : await this.#readStored(lookUp);
    if (storedCertificate !== undefined) return storedCertificate;
    if (occasion === 'use') await assertCurrent(this.ports.store, tenant);
    return this.#obtain(lookUp);
  }

  /** A stored certificate, possibly obtained by another process, if it is usable. */
  async #readStored({ tenant, certificateRequest, now }: CertificateLookUp): Promise<UsableCertificate | undefined> {
    const { store, registrationCertificateVerifier } = this.ports;
    const storedCertificate = await store.forTenant(tenant.tenantId, (repositories) =>
      repositories.registrationCertificates.find(certificateRequest.id),
    );
    if (storedCertificate === undefined) return undefined;
    try {
      const certificate = await registrationCertificateVerifier.verify(tenant, storedCertificate.jwt, now);
      const usable = usableFrom(certificate, certificateRequest, storedCertificate.updatedAt, now);
      return isUsable(usable, now) ? usable : undefined;
    } catch (error) {
      if (!(error instanceof RegistrationCertificateRefusal)) throw error;
      if (error.isTemporary) throw registrarFailure(error, PATH);
      return undefined;
    }
  }

  async #obtain(lookUp: CertificateLookUp): Promise<UsableCertificate> {
    const { tenant, certificateRequest, now } = lookUp;
    const { account, request, query, issued: issuedTypes, id } = certificateRequest;
    if (account === undefined) throw invalidInput(PATH, 'No registrar is configured. Send POST /registrar/config first.');
    const issued = await obtainFromRegistrar(this.ports.registrar, { account, request, query, path: PATH, issued: issuedTypes });
    const usable = await this.#accept(lookUp, issued.jwt);
    const { id: certificateId, jwt } = issued;
    await this.#store(tenant, { id, certificateId, jwt, createdAt: now, updatedAt: now });
    return usable;
  }

  /** @throws Failure for an invalid certificate, or one that does not cover the query. */
  async #accept({ tenant, certificateRequest, now }: CertificateLookUp, jwt: string): Promise<UsableCertificate> {
    try {
      const { registrationCertificateVerifier } = this.ports;
      const certificate = await registrationCertificateVerifier.verify(tenant, jwt, now, certificateRequest);
      return usableFrom(certificate, certificateRequest, now, now);
    } catch (error) {
      throw registrarFailure(error, PATH);
    }
  }

  async #store(tenant: TenantConfiguration, certificate: StoredRegistrationCertificate): Promise<void> {
    await this.ports.store.forTenant(
      tenant.tenantId,
      async ({ registrationCertificates: documents }) => {
        await documents.put(certificate);
        const oldestFirst = (await documents.list()).sort(
          (certificateA, certificateB) => certificateA.updatedAt.getTime() - certificateB.updatedAt.getTime(),
        );
        for (const { id } of oldestFirst.slice(0, -MAX_PER_TENANT)) await documents.remove(id);
      },
      { by: SYSTEM, exclusive: true },
    );
  }
}

function nameOf({ tenant, certificateRequest }: CertificateLookUp): string {
  return `${tenant.tenantId} ${certificateRequest.id}`;
}
