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
import { isMeantFor, isOffered, walletInitiatedSession } from './offered-sessions.ts';

/** Bit i of a session's mask stands for the i-th configuration. */
const MAX_CONFIGURATIONS = 30;

const NAME = /^[A-Za-z0-9_-]{1,128}$/;

type Asked = {
  readonly configured: TenantConfiguration;
  readonly token: ExternalToken;
  /** Configurations that the token is a right to. */
  readonly covered: readonly string[];
  readonly now: Date;
};

/** Finds what a verified token of an external authorization server is a right to. */
export class ExternalSessions extends needs({ store: Store, sessionNotes: SessionNotes, random: Random, settings: ServiceSettings }) {
  /**
   * The session that the token names, or the newest of its user, or a new one. The caller knows that the one who sends the
   * token may use it.
   * @returns the token as one of this service would read.
   * @throws Failure `invalid_token` when the token names a session that is no offer for it, `insufficient_scope` when
   *   it covers nothing that the tenant issues.
   */
  async resolve(configured: TenantConfiguration, token: ExternalToken, now: Date): Promise<WalletTokenClaims> {
    // With an offer only what it contains counts, however much more the token covers.
    const isOfOffer = token.issuerState !== undefined;
    const covered = token.credentialConfigurationIds.slice(0, isOfOffer ? undefined : MAX_CONFIGURATIONS);
    if (covered.length === 0) throw new Failure('insufficient_scope', 'the access token covers no credential of this issuer');
    const asked = { configured, token, covered, now };
    const session = token.issuerState === undefined ? await this.#ofSubject(asked) : await this.#offered(asked, token.issuerState);
    const ids = covered.filter((id) => session.configurationIds.includes(id));
    return this.#claims(configured, token, session, ids);
  }

  /** The session of an offer; no matter who had it before, the newest user is noted. */
  async #offered({ configured, token, now }: Asked, issuerState: string): Promise<Session> {
    const { store, sessionNotes } = this.ports;
    const reads = store.read(configured.tenantId);
    // Its server copies it from the wallet's request, so it can be anything.
    const found = NAME.test(issuerState) ? await reads.sessionByPublicId(issuerState as PublicId) : undefined;
    const session = found?.session;
    if (session === undefined || !(await isMeantFor(configured, session, token.issuer))) {
      throw new Failure('invalid_token', 'issuer_state of the access token names no offer for it');
    }
    // An offer that is over stays so; the request that follows is refused for that.
    if (!isOffered(session, [], now)) return session;
    const { issuer, subject } = token;
    const { external } = session.outcome ?? {};
    if (external?.issuer === issuer && external.subject === subject) return session;
    const own = { hash: this.#hash('subject', configured, token), sessionId: session.id };
    await store.commit(configured.tenantId, { subject: own }, now);
    const note = { issuer, subject };
    return (await sessionNotes.note(session, (outcome) => ({ ...outcome, external: note }))) ?? session;
  }

  async #ofSubject(asked: Asked): Promise<Session> {
    const { configured, token, covered, now } = asked;
    const known = await this.ports.store.read(configured.tenantId).sessionsOfSubject(this.#hash('subject', configured, token));
    for (const session of known) {
      if (session.expiresAt <= now || !isOffered(session, covered, now)) continue;
      if (await isMeantFor(configured, session, token.issuer)) return session;
    }
    return this.#open(asked);
  }

  /** One session per token, however many requests come with it at once. */
  async #open({ configured, token, covered, now }: Asked): Promise<Session> {
    const { store } = this.ports;
    const publicId = this.#hash('session', configured, token, tokenIdOf(token)) as PublicId;
    const find = async () => (await store.read(configured.tenantId).sessionByPublicId(publicId))?.session;
    const known = await find();
    if (known !== undefined) return known;
    const { issuer, subject } = token;
    const outcome = { external: { issuer, subject } };
    const at = { server: issuer, publicId, outcome };
    const session = await walletInitiatedSession(this.ports, configured, covered, now, at);
    try {
      const subject = { hash: this.#hash('subject', configured, token), sessionId: session.id };
      // What the session covers stays as it is, so it must not rest on a configuration of the past.
      const { revisions } = configured;
      const change = { serving: true, revisions, opens: { session }, subject } as const;
      if (!(await store.commit(configured.tenantId, change, now)).done) {
        await assertCurrent(store, configured);
        throw new Failure('not_found', 'unknown address');
      }
    } catch (error) {
      // Another request with this token may have been first, and then the public id is taken.
      const first = await find();
      if (first === undefined) throw error;
      return first;
    }
    return session;
  }

  #claims(
    configured: TenantConfiguration,
    token: ExternalToken,
    { publicId }: Session,
    credentialConfigurationIds: readonly string[],
  ): WalletTokenClaims {
    const { issuer, subject, clientId, keyThumbprint, claims } = token;
    const { iat } = claims;
    return {
      issuer,
      audience: configured.issuer,
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

  /** Keyed, so that nothing stored tells who a user is, and nobody can guess the name of a session. */
  #hash(purpose: string, { tenantId }: TenantConfiguration, token: ExternalToken, more = ''): string {
    const parts = [purpose, tenantId, token.issuer, token.subject, more];
    return createHmac('sha256', this.ports.settings.subjectKey).update(JSON.stringify(parts)).digest('base64url');
  }
}

/** RFC 9068 section 2.2 wants a `jti`; a token without one is itself. */
function tokenIdOf({ tokenId, claims }: ExternalToken): string {
  return tokenId ?? createHash('sha256').update(JSON.stringify(claims)).digest('base64url');
}
