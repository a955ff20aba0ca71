import { NodeCertificates } from '../../../adapters/crypto/certificates.ts';
import { NodeSignatures } from '../../../adapters/crypto/signatures.ts';
import { AjvSchemaValidator } from '../../../adapters/system/schema-validator.ts';
import {
  OfflineIssuerRegistration,
  OfflineRegistrationCertificates,
} from '../../../application/configuration-files/offline.ts';
import type { WakeUp } from '../../../application/ports/event-bus.ts';
import { Registrar, type RegistrarError } from '../../../application/ports/registrar.ts';
import { Remote, RemoteError, type RemoteResponse } from '../../../application/ports/remote.ts';
import type { TenantRepositories } from '../../../application/ports/repositories.ts';
import { Webhooks } from '../../../application/ports/webhooks.ts';
import { ListSigners } from '../../../application/trust-lists/list-signers.ts';
import { TrustListPublisher } from '../../../application/trust-lists/trust-list-publisher.ts';
import type { IssuedRegistrationCertificate, RelyingParty } from '../../../domain/registrar/registrar-api.ts';
import { Failure } from '../../../domain/shared/failure.ts';
import { inlineTrustLists } from '../../support/inline-trust-lists.ts';
import { ACME, aWorld } from './world.ts';

/** Addresses that the settings of this service do not let it call. */
const isRefused = (url: string) => new URL(url).hostname.endsWith('.internal');

class UncalledRemote extends Remote {
  override refuses(url: string): boolean {
    return isRefused(url);
  }
  override async request(): Promise<RemoteResponse> {
    throw new RemoteError('unreachable', 'administration calls nobody');
  }
}

class UncalledWebhooks extends Webhooks {
  override refuses(url: string): boolean {
    return isRefused(url);
  }
  override async post(): Promise<never> {
    throw new Error('administration calls nobody');
  }
}

/** Answers as a test says, and fails in whatever it is asked when the test says so. */
export class FakeRegistrar extends Registrar {
  fault: RegistrarError | undefined;
  parties: readonly RelyingParty[] = [{ id: 'party' }, { id: 'second' }];
  accessCertificate = '';
  certificate: IssuedRegistrationCertificate | undefined;
  readonly asked: string[] = [];

  #ask(what: string): void {
    this.asked.push(what);
    if (this.fault !== undefined) throw this.fault;
  }

  override async logIn(): Promise<void> {
    this.#ask('login');
  }
  override async relyingParties(): Promise<readonly RelyingParty[]> {
    this.#ask('parties');
    return this.parties;
  }
  override async issueAccessCertificate(_: unknown, { dns, rpId }: { dns: readonly string[]; rpId: string }) {
    this.#ask(`access ${rpId} ${dns.join()}`);
    return { id: 'issued', crt: this.accessCertificate };
  }
  override async issueRegistrationCertificate(_: unknown, { rpId }: { rpId: string }) {
    this.#ask(`registration ${rpId}`);
    if (this.certificate === undefined) throw new Error('nothing to issue');
    return this.certificate;
  }
  override async findRegistrationCertificate(_: unknown, id: string) {
    this.#ask(`find ${id}`);
    return this.certificate?.id === id ? this.certificate : undefined;
  }
}

/** The tenant `acme` with its first keys, and every port of administration. */
export async function anAdministration() {
  const world = aWorld();
  await world.createTenant();
  const ports = {
    ...world,
    remote: new UncalledRemote(),
    webhooks: new UncalledWebhooks(),
    schemaValidator: new AjvSchemaValidator(),
    signatures: new NodeSignatures(),
    certificates: new NodeCertificates(),
    trustListReader: inlineTrustLists(),
    registrar: new FakeRegistrar(),
    trustListPublisher: new TrustListPublisher(world),
  };
  const woken: WakeUp[] = [];
  world.eventBus.subscribe((wakeUp) => woken.push(wakeUp));
  /** Writes as the service itself would. */
  const write = <T>(work: (own: TenantRepositories) => Promise<T>) =>
    world.store.forTenant(ACME, work, { by: 'system', alone: true });
  const registrationCertificates = new OfflineRegistrationCertificates(ports);
  return {
    ...ports,
    registrationCertificates,
    issuerRegistration: new OfflineIssuerRegistration({ registrationCertificates }),
    listSigners: new ListSigners(ports),
    woken,
    write,
  };
}

export type AdministrationWorld = Awaited<ReturnType<typeof anAdministration>>;

/** How something ends: `done`, or the code of the failure with the first member of the document that it names. */
export async function endOf(work: Promise<unknown>): Promise<string> {
  try {
    await work;
    return 'done';
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    const [first] = error.details.errors ?? [];
    return first === undefined ? error.code : `${error.code} ${first.path}`.trim();
  }
}
