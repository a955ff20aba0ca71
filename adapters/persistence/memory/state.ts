import type { SessionLogEntry, TenantHead, UsedValue } from '../../../application/ports/store.ts';
import type { AuditEntry } from '../../../domain/audit/audit-entry.ts';
import type { AuditHead } from '../../../domain/audit/chain.ts';
import type { Client } from '../../../domain/clients/client.ts';
import type { CredentialConfiguration } from '../../../domain/issuance/configuration.ts';
import type { DeferredTransaction } from '../../../domain/issuance/deferred.ts';
import type { IssuanceConfiguration } from '../../../domain/issuance/issuance-configuration.ts';
import type { KeyChain } from '../../../domain/keys/key-chain.ts';
import type { Authorization } from '../../../domain/oauth/authorization.ts';
import type { Grant } from '../../../domain/oauth/grant.ts';
import type { RegistrarConfiguration } from '../../../domain/registrar/registrar-configuration.ts';
import type { StoredRegistrationCertificate } from '../../../domain/registrar/registration-certificate.ts';
import type { Session } from '../../../domain/sessions/session.ts';
import { Failure } from '../../../domain/shared/failure.ts';
import type { IssuedBatch, StatusList } from '../../../domain/status-lists/status-list.ts';
import type { Tenant } from '../../../domain/tenants/tenant.ts';
import type { SeenRelease } from '../../../domain/trust-lists/freshness.ts';
import type { ListVersion, PublishedList } from '../../../domain/trust-lists/published-list.ts';
import type { PresentationConfiguration } from '../../../domain/verification/configuration.ts';
import { EVERYWHERE, Table } from './table.ts';

export type StatusEntry = {
  readonly listId: string;
  readonly index: number;
  readonly status: number;
  readonly changedVersion: number;
};
export type LoggedEvent = SessionLogEntry & { readonly sessionId: string };

/** Everything that the store keeps. Tables are scoped by tenant unless their comment says otherwise. */
export class State {
  /** Everywhere, by id. */
  readonly tenants = new Table<Tenant>();
  /** Everywhere, by client id. */
  readonly clients = new Table<Client>();
  /** By client id: whom the tenant removed. */
  readonly removedClients = new Table<Pick<Client, 'clientId'>>();
  readonly issuanceConfigurations = new Table<IssuanceConfiguration>();
  readonly credentialConfigurations = new Table<CredentialConfiguration>();
  readonly presentationConfigurations = new Table<PresentationConfiguration>();
  readonly keyChains = new Table<KeyChain>();
  readonly registrarConfigurations = new Table<RegistrarConfiguration>();
  readonly registrationCertificates = new Table<StoredRegistrationCertificate>();
  readonly sessions = new Table<Session>();
  /** By session and version. */
  readonly events = new Table<LoggedEvent>();
  readonly grants = new Table<Grant>();
  readonly authorizations = new Table<Authorization>();
  readonly deferred = new Table<DeferredTransaction>();
  /** By subject hash and session. */
  readonly subjects = new Table<{ readonly subjectHash: string; readonly sessionId: string }>();
  /** By kind and hash. */
  readonly usedValues = new Table<UsedValue>();
  /** By session and id. */
  readonly batches = new Table<IssuedBatch>();
  /** By session: bits of the configurations that it may issue no more. */
  readonly bars = new Table<{ readonly mask: number }>();
  readonly statusLists = new Table<StatusList>();
  /** By list and signers. */
  readonly seenReleases = new Table<SeenRelease>();
  /** By list and index. */
  readonly statusEntries = new Table<StatusEntry>();
  readonly trustLists = new Table<PublishedList>();
  /** By list and sequence number. */
  readonly trustListVersions = new Table<ListVersion>();
  /** By list: the last number that it had when it was removed. */
  readonly trustListNumbers = new Table<{ readonly sequenceNumber: number }>();
  /** By sequence, in the scope of their chain. */
  readonly auditEntries = new Table<AuditEntry>();
  /** One per chain, under the id `head`. */
  readonly auditHeads = new Table<AuditHead>();
  /** Everywhere, by name. */
  readonly leases = new Table<{ readonly holder: string; readonly expiresAt: Date }>();

  head(tenantId: string): TenantHead | undefined {
    const tenant = this.tenants.find(EVERYWHERE, tenantId);
    return tenant === undefined
      ? undefined
      : { id: tenant.id, status: tenant.status, revision: tenant.revision };
  }

  raiseRevision(tenantId: string): void {
    const tenant = this.tenants.find(EVERYWHERE, tenantId);
    if (tenant === undefined) throw new Failure('not_found', 'there is no such tenant');
    this.tenants.put(EVERYWHERE, tenantId, { ...tenant, revision: tenant.revision + 1 });
  }

  /** Removes what is the tenant's own, the tenant itself apart. */
  removeTenantRows(tenantId: string): void {
    for (const table of this.#tables()) table.removeScope(tenantId);
    for (const { clientId } of this.clients.list(EVERYWHERE, (client) => client.tenantId === tenantId)) {
      this.clients.remove(EVERYWHERE, clientId);
    }
  }

  /** What belongs to a session and goes with its personal data. */
  removeSessionData(tenantId: string, id: string): void {
    const ofSession = ({ sessionId }: { readonly sessionId: string }) => sessionId === id;
    for (const grant of this.grants.list(tenantId, ofSession)) this.grants.remove(tenantId, grant.id);
    for (const row of this.deferred.list(tenantId, ofSession)) this.deferred.remove(tenantId, row.id);
    for (const row of this.subjects.list(tenantId, ofSession)) {
      this.subjects.remove(tenantId, `${row.subjectHash} ${id}`);
    }
  }

  saveSession(session: Session): void {
    this.sessions.put(session.tenantId, session.id, session);
  }

  /** Logs the status that the session has come to. */
  log({ tenantId, id, version, status }: Session, at: Date): void {
    const event = { sessionId: id, sequence: version, version, status, at };
    this.events.put(tenantId, `${id} ${version}`, event);
  }

  /** @returns what brings all tables back to how they are now. */
  mark(): () => void {
    const undo = this.#tables().map((table) => table.mark());
    return () => {
      for (const step of undo) step();
    };
  }

  #tables(): readonly Pick<Table<unknown>, 'removeScope' | 'mark'>[] {
    return Object.values(this).filter((member) => member instanceof Table);
  }
}
