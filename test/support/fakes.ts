import type { Container } from 'inversify';
import { NodeCertificates } from '../../adapters/crypto/certificates.ts';
import { NodeSignatures } from '../../adapters/crypto/signatures.ts';
import { XmlTrustedLists } from '../../adapters/xml/xml-trusted-lists.ts';
import { PruneAuditLog } from '../../application/audit/prune-audit-log.ts';
import { NotifyWalletRevocations } from '../../application/issuance/notify-wallet-revocations.ts';
import { FollowWallets } from '../../application/oauth/follow-wallets.ts';
import { AuthorizationServers, type TokenAnswer } from '../../application/ports/authorization-servers.ts';
import { FinishDeliveries } from '../../application/sessions/finish-deliveries.ts';
import { FulfilRevocations } from '../../application/status-lists/fulfil-revocations.ts';
import { InlineTrustLists } from '../../application/trust-lists/open-list.ts';
import type { ServerMetadata } from '../../domain/oauth/server-metadata.ts';
import type { JsonObject } from '../../domain/shared/json.ts';

/** Parses trust lists of either format in the thread of the test. */
export function inlineTrustLists(): InlineTrustLists {
  return new InlineTrustLists({
    signatures: new NodeSignatures(),
    certificates: new NodeCertificates(),
    xmlTrustedListReader: new XmlTrustedLists(),
  });
}

export const UPSTREAM = 'https://login.example';

/** A provider where every login is Ada. A test replaces a method to change a response. */
export class FakeAuthorizationServers extends AuthorizationServers {
  metadata: ServerMetadata = {
    issuer: UPSTREAM,
    authorizationEndpoint: `${UPSTREAM}/authorize`,
    tokenEndpoint: `${UPSTREAM}/token`,
    jwksUri: `${UPSTREAM}/jwks`,
    userinfoEndpoint: undefined,
    clientAuthenticationMethods: ['client_secret_basic'],
    namesItselfInResponses: true,
  };
  claims: JsonObject = { sub: 'ada', given_name: 'Ada' };
  override async discover(): Promise<ServerMetadata> {
    return this.metadata;
  }
  override async verifyToken() {
    return { type: 'at+jwt', algorithm: 'ES256', claims: this.claims } as const;
  }
  override async exchangeCode(): Promise<TokenAnswer> {
    return { idToken: 'the ID token', accessToken: undefined };
  }
  override async logInAsClient(): Promise<void> {}
  override async verifyIdToken(): Promise<JsonObject> {
    return this.claims;
  }
  override async readReceivedAccessToken(): Promise<undefined> {}
  override async readUserinfo(): Promise<JsonObject | undefined> {
    return undefined;
  }
}

/** Stubs the jobs for wallet revocations, revocations by subject and interrupted deliveries. */
export function stubFollowJobs(container: Container): void {
  const stubbedFollow = { execute: async () => ({ fallen: 0, mayBeMore: false }) };
  container.bind(FollowWallets).toConstantValue(stubbedFollow as unknown as FollowWallets);
  const stubbedFulfil = { execute: async () => 0 } as unknown as FulfilRevocations;
  container.bind(FulfilRevocations).toConstantValue(stubbedFulfil);
  const stubbedFinish = { execute: async () => 0 } as unknown as FinishDeliveries;
  container.bind(FinishDeliveries).toConstantValue(stubbedFinish);
  const stubbedPrune = { execute: async () => ({ last: undefined, gone: 0 }) } as unknown as PruneAuditLog;
  container.bind(PruneAuditLog).toConstantValue(stubbedPrune);
  container.bind(NotifyWalletRevocations).toConstantValue({ execute: async () => 0 } as unknown as NotifyWalletRevocations);
}
