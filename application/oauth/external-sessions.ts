import { createHash, createHmac } from 'node:crypto';
import type { WalletTokenClaims } from '../../domain/oauth/access-token.ts';
import type { ExternalToken } from '../../domain/oauth/external-token.ts';
import type { Session } from '../../domain/sessions/session.ts';
import { defined } from '../../domain/shared/defined.ts';
import { Failure } from '../../domain/shared/failure.ts';
import type { PublicId } from '../../domain/shared/ids.ts';
import { needs } from '../needs.ts';
import { Random } from '../ports/random.ts';
import { ServiceSettings } from '../ports/settings.ts';
import { Store } from '../ports/store.ts';
import { SessionNotes } from '../sessions/session-notes.ts';
import type { TenantConfiguration } from '../tenant-cache/tenant-configuration.ts';
import { assertCurrent } from '../transactions/attempt.ts';
import { isForServer, isOffered, walletInitiatedSession } from './offered-sessions.ts';

/** Size of a session's bit mask, with one bit per configuration. */
const MAX_CONFIGURATIONS = 30;

const NAME = /^[A-Za-z0-9_-]{1,128}$/;

type TokenCoverage = {
  readonly tenant: TenantConfiguration;
  readonly token: ExternalToken;
  /** Configurations that the token covers. */
  readonly covered: readonly string[];
  readonly now: Date;
};

/** Finds or creates the session for a verified token of an external authorization server. */
export class ExternalSessions extends needs({ store: Store, sessionNotes: SessionNotes, random: Random, settings: ServiceSettings }) {
  /**
   * Returns the session that the token names, the newest one of its user, or a new one. The caller has verified that the sender
   * may use the token.
   * @returns claims as of a token of this service.
   * @throws Failure `invalid_token` when the token names a session that is no offer for it, `insufficient_scope` when
   *   it covers nothing that the tenant issues.
   */
  async resolve(tenant: TenantConfiguration, token: ExternalToken, now: Date): Promise<WalletTokenClaims> {
    // An offer limits the token to its credentials.
    const hasOffer = token.issuerState !== undefined;
    const covered = token.credentialConfigurationIds.slice(0, hasOffer ? undefined : MAX_CONFIGURATIONS);
    if (covered.length === 0) throw new Failure('insufficient_scope', 'the access token covers no credential of this issuer');
    const coverage = { tenant, token, covered, now };
    const session = token.issuerState === undefined ? await this.#ofSubject(coverage) : await this.#offered(coverage, token.issuerState);
    const ids = covered.filter((id) => session.configurationIds.includes(id));
    return this.#claims(tenant, token, session, ids);
  }

  /** The session of an offer. If several users used it, the last one is recorded. */
  async #offered({ tenant, token, now }: TokenCoverage, issuerState: string): Promise<Session> {
    const { store, sessionNotes } = this.ports;
    const reads = store.read(tenant.tenantId);
    // The server copies issuer_state from the wallet's request, so it is untrusted.
    const match = NAME.test(issuerState) ? await reads.sessionByPublicId(issuerState as PublicId) : undefined;
    const session = match?.session;
    if (session === undefined || !(await isForServer(tenant, session, token.issuer))) {
      throw new Failure('invalid_token', 'issuer_state of the access token does not belong to an offer for it');
    }
    // An offer that is over is not reopened; the credential request is rejected later.
    if (!isOffered(session, [], now)) return session;
    const { issuer, subject } = token;
    const { external } = session.outcome ?? {};
    if (external?.issuer === issuer && external.subject === subject) return session;
    const subjectEntry = { hash: this.#hash('subject', tenant, token), sessionId: session.id };
    await store.commit(tenant.tenantId, { subject: subjectEntry }, now);
    const note = { issuer, subject };
    return (await sessionNotes.note(session, (outcome) => ({ ...outcome, external: note }))) ?? session;
  }

  async #ofSubject(coverage: TokenCoverage): Promise<Session> {
    const { tenant, token, covered, now } = coverage;
    const userSessions = await this.ports.store.read(tenant.tenantId).sessionsOfSubject(this.#hash('subject', tenant, token));
    for (const session of userSessions) {
      if (session.expiresAt <= now || !isOffered(session, covered, now)) continue;
      if (await isForServer(tenant, session, token.issuer)) return session;
    }
    return this.#open(coverage);
  }

  /** Opens one session per token, however many concurrent requests use it. */
  async #open({ tenant, token, covered, now }: TokenCoverage): Promise<Session> {
    const { store } = this.ports;
    const publicId = this.#hash('session', tenant, token, tokenIdOf(token)) as PublicId;
    const find = async () => (await store.read(tenant.tenantId).sessionByPublicId(publicId))?.session;
    const existing = await find();
    if (existing !== undefined) return existing;
    const { issuer, subject } = token;
    const outcome = { external: { issuer, subject } };
    const options = { server: issuer, publicId, outcome };
    const session = await walletInitiatedSession(this.ports, tenant, covered, now, options);
    try {
      const subject = { hash: this.#hash('subject', tenant, token), sessionId: session.id };
      // The configurations of a session are fixed, so it must not be created from an outdated configuration.
      const { revisions } = tenant;
      const change = { serving: true, revisions, opens: { session }, subject } as const;
      if (!(await store.commit(tenant.tenantId, change, now)).done) {
        await assertCurrent(store, tenant);
        throw new Failure('not_found', 'unknown address');
      }
    } catch (error) {
      // A concurrent request with this token may have created the session, so the public id is taken.
      const concurrentSession = await find();
      if (concurrentSession === undefined) throw error;
      return concurrentSession;
    }
    return session;
  }

  #claims(
    tenant: TenantConfiguration,
    token: ExternalToken,
    { publicId }: Session,
    credentialConfigurationIds: readonly string[],
  ): WalletTokenClaims {
    const { issuer, subject, clientId, keyThumbprint, claims } = token;
    const { iat } = claims;
    return {
      issuer,
      audience: tenant.issuer,
      subject,
      publicId,
      tokenId: tokenIdOf(token),
      issuedAtSeconds: typeof iat === 'number' ? iat : 0,
      expiresAtSeconds: token.expiresAtSeconds,
      credentialConfigurationIds,
      identifiers: token.identifiers,
      configurationOfIdentifier: token.configurationOfIdentifier,
      foreignClaims: claims,
      ...defined({ clientId, keyThumbprint }),
    };
  }

  /** Keyed, so that stored values do not identify users and public ids of sessions cannot be guessed. */
  #hash(purpose: string, { tenantId }: TenantConfiguration, token: ExternalToken, more = ''): string {
    const parts = [purpose, tenantId, token.issuer, token.subject, more];
    return createHmac('sha256', this.ports.settings.subjectKey).update(JSON.stringify(parts)).digest('base64url');
  }
}

/** RFC 9068 section 2.2 requires a `jti`; without one, the hash of the claims identifies the token. */
function tokenIdOf({ tokenId, claims }: ExternalToken): string {
  return tokenId ?? createHash('sha256').update(JSON.stringify(claims)).digest('base64url');
}
