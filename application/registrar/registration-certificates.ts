import { LRUCache } from 'lru-cache';
import { SYSTEM } from '../../domain/audit/audit-entry.ts';
import type { KeyChain } from '../../domain/keys/key-chain.ts';
import { RegistrationCertificateRefusal, type StoredRegistrationCertificate } from '../../domain/registrar/registration-certificate.ts';
import { certificateFor } from '../../domain/registrar/registration-certificate-request.ts';
import { Failure, invalidInput } from '../../domain/shared/failure.ts';
import type { JsonObject } from '../../domain/shared/json.ts';
import type { PresentationConfigurationBody } from '../../domain/verification/configuration.ts';
import { needs } from '../needs.ts';
import { Registrar } from '../ports/registrar.ts';
import { Store } from '../ports/store.ts';
import { boundedBytes } from '../tenant-cache/bounded.ts';
import { SingleFlight } from '../tenant-cache/single-flight.ts';
import type { TenantConfiguration } from '../tenant-cache/tenant-configuration.ts';
import { assertCurrent } from '../transactions/attempt.ts';
import { Outdated } from '../transactions/known.ts';
import { accessChainOf, assertOfSubject, assertOfUse } from './certificate-subject.ts';
import { obtainFromRegistrar } from './obtain-from-registrar.ts';
import { registrarFailure } from './registrar-failures.ts';
import { type CheckedCertificate, RegistrationCertificateVerifier } from './registration-certificate-verifier.ts';
import { isUsable, type UsableCertificate, usableFrom, type WantedCertificate, wantedCertificate } from './wanted-certificate.ts';

const PATH = 'registrationCert';
/** Certificates that one tenant keeps; the one that was obtained first goes first. */
const MAX_PER_TENANT = 200;
const MAX_USABLE_BYTES = 16 * 1024 * 1024;
const MAX_FAILURE_BYTES = 2 * 1024 * 1024;
/** An error with where it happened. */
const FAILURE_BYTES = 3_000;
/** Nobody asks a registrar again so soon after it did not answer, */
const OUTAGE_MS = 15_000;
/** or after it gave what is of no use: it would issue more of the same with every request. */
const REFUSAL_MS = 5 * 60 * 1000;

type Configuration = Pick<PresentationConfigurationBody, 'id' | 'dcql_query' | 'registrationCert' | 'purpose'>;

/** `save`: tried again whatever failed before. `use`: what the caller knows may turn out to be out of date. */
type Occasion = 'save' | 'use';

type Question = {
  readonly configured: TenantConfiguration;
  readonly wanted: WantedCertificate;
  readonly now: Date;
  readonly occasion: Occasion;
};

/** Says to wallets what the tenant may ask for: registration certificates of presentation configurations. */
export class RegistrationCertificates extends needs({
  store: Store,
  registrar: Registrar,
  registrationCertificateVerifier: RegistrationCertificateVerifier,
}) {
  readonly #usable = new LRUCache<string, UsableCertificate>(boundedBytes(MAX_USABLE_BYTES));
  readonly #failures = new LRUCache<string, { readonly failure: Failure; readonly until: number }>(
    boundedBytes(MAX_FAILURE_BYTES, () => FAILURE_BYTES),
  );
  readonly #flights = new SingleFlight<UsableCertificate>();

  /**
   * The entry for `verifier_info` (ETSI TS 119 472-2 section 6.3.2.2). Costs nothing once the certificate is there.
   * @param configuration of `configured`.
   * @param chain that signs the request; undefined for one that is not signed.
   * @returns undefined when the configuration wants none.
   * @throws Failure when there is no certificate for this very request: it is never made without.
   */
  async entryFor(
    configured: TenantConfiguration,
    configuration: Configuration,
    chain: KeyChain | undefined,
    now: Date,
  ): Promise<JsonObject | undefined> {
    const { registrationCert: request, dcql_query: query, purpose } = configuration;
    if (request === undefined || request === null) return undefined;
    const wanted = await configured.derive(`registration-certificate/${configuration.id}`, () =>
      wantedCertificate(configured, { query }, certificateFor(request, purpose)),
    );
    const certificate = await this.usable(configured, wanted, now);
    if (chain !== undefined) assertOfSubject(certificate, chain, PATH);
    // What was ordered for this use says what the order said.
    if (request.body === undefined) assertOfUse(configured, certificate, purpose);
    return { format: 'registration_cert', data: certificate.jwt };
  }

  /**
   * Whether a configuration that is about to be saved can be used.
   * @throws Failure `invalid_input` at `registrationCert`, `unavailable` when the registrar does not answer.
   */
  async assertUsable(configured: TenantConfiguration, configuration: PresentationConfigurationBody, now: Date): Promise<void> {
    const { registrationCert: request, dcql_query: query, purpose } = configuration;
    if (request === undefined || request === null) return;
    const wanted = await wantedCertificate(configured, { query }, certificateFor(request, purpose));
    const certificate = await this.obtainable(configured, wanted, now);
    const chains = await configured.keyChains();
    for (const id of [configuration.accessKeyChainId, ...(configuration.furtherAccessKeyChainIds ?? [])]) {
      const chain = accessChainOf(chains, now, id);
      if (chain !== undefined) assertOfSubject(certificate, chain, PATH);
    }
    // What was ordered for this use says what the order said.
    if (request.body === undefined) assertOfUse(configured, certificate, purpose);
  }

  /** @throws Failure when there is none that is good for what is wanted. */
  async usable(configured: TenantConfiguration, wanted: WantedCertificate, now: Date): Promise<CheckedCertificate> {
    return (await this.#get({ configured, wanted, now, occasion: 'use' })).certificate;
  }

  /** The same for what is about to be saved: whatever failed before is tried again. @throws Failure */
  async obtainable(configured: TenantConfiguration, wanted: WantedCertificate, now: Date): Promise<CheckedCertificate> {
    return (await this.#resolveOnce({ configured, wanted, now, occasion: 'save' })).certificate;
  }

  async #get(question: Question): Promise<UsableCertificate> {
    const { now } = question;
    const name = nameOf(question);
    const known = this.#usable.get(name);
    if (known !== undefined && isUsable(known, now)) return known;
    const failed = this.#failures.get(name);
    if (failed !== undefined && now.getTime() < failed.until) throw failed.failure;
    return this.#resolveOnce(question);
  }

  #resolveOnce(question: Question): Promise<UsableCertificate> {
    const { occasion, now } = question;
    const name = nameOf(question);
    return this.#flights.run(`${name} ${occasion}`, async () => {
      try {
        const usable = await this.#resolve(question);
        this.#usable.set(name, usable);
        this.#failures.delete(name);
        return usable;
      } catch (error) {
        // A save that is refused changes nothing: neither what requests use nor when they ask again.
        if (occasion === 'use' && error instanceof Failure && !(error instanceof Outdated)) {
          const restMs = error.code === 'unavailable' ? OUTAGE_MS : REFUSAL_MS;
          this.#failures.set(name, { failure: error, until: now.getTime() + restMs });
        }
        throw error;
      }
    });
  }

  async #resolve(question: Question): Promise<UsableCertificate> {
    const { configured, wanted, occasion } = question;
    const { jwt, id } = wanted.request;
    if (jwt !== undefined) return this.#accept(question, jwt);
    // What an administrator names is looked up for them: it may have been revoked.
    const kept = occasion === 'save' && id !== undefined ? undefined : await this.#kept(question);
    if (kept !== undefined) return kept;
    if (occasion === 'use') await assertCurrent(this.ports.store, configured);
    return this.#obtain(question);
  }

  /** What was obtained before, perhaps by another process, while it is good. */
  async #kept({ configured, wanted, now }: Question): Promise<UsableCertificate | undefined> {
    const { store, registrationCertificateVerifier } = this.ports;
    const stored = await store.forTenant(configured.tenantId, (own) => own.registrationCertificates.find(wanted.id));
    if (stored === undefined) return undefined;
    try {
      const certificate = await registrationCertificateVerifier.verify(configured, stored.jwt, now);
      const usable = usableFrom(certificate, wanted, stored.updatedAt, now);
      return isUsable(usable, now) ? usable : undefined;
    } catch (error) {
      if (!(error instanceof RegistrationCertificateRefusal)) throw error;
      if (error.isTemporary) throw registrarFailure(error, PATH);
      return undefined;
    }
  }

  async #obtain(question: Question): Promise<UsableCertificate> {
    const { configured, wanted, now } = question;
    const { account, request, query, issued: provided, id } = wanted;
    if (account === undefined) throw invalidInput(PATH, 'No registrar is configured; POST /registrar/config comes first.');
    const issued = await obtainFromRegistrar(this.ports.registrar, { account, request, query, path: PATH, issued: provided });
    const usable = await this.#accept(question, issued.jwt);
    const { id: certificateId, jwt } = issued;
    await this.#keep(configured, { id, certificateId, jwt, createdAt: now, updatedAt: now });
    return usable;
  }

  /** @throws Failure for a certificate that is not good, or not good for the query. */
  async #accept({ configured, wanted, now }: Question, jwt: string): Promise<UsableCertificate> {
    try {
      const { registrationCertificateVerifier } = this.ports;
      const certificate = await registrationCertificateVerifier.verify(configured, jwt, now, wanted);
      return usableFrom(certificate, wanted, now, now);
    } catch (error) {
      throw registrarFailure(error, PATH);
    }
  }

  async #keep(configured: TenantConfiguration, certificate: StoredRegistrationCertificate): Promise<void> {
    await this.ports.store.forTenant(
      configured.tenantId,
      async ({ registrationCertificates: documents }) => {
        await documents.put(certificate);
        const oldestFirst = (await documents.list()).sort((one, other) => one.updatedAt.getTime() - other.updatedAt.getTime());
        for (const { id } of oldestFirst.slice(0, -MAX_PER_TENANT)) await documents.remove(id);
      },
      { by: SYSTEM, alone: true },
    );
  }
}

function nameOf({ configured, wanted }: Question): string {
  return `${configured.tenantId} ${wanted.id}`;
}
