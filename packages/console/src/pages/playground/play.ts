import { type Signal, signal } from '@preact/signals';
import type { Misbehaviour } from '../../../../wallet/src/core/index.ts';
import { ask } from '../../api/call.ts';
import { handset } from '../phone/handset.ts';
import type { StatusMatch } from '../status/find-session.tsx';
import type { ListRow } from '../status/list-row.ts';
import type { Demonstration } from './demonstration.ts';

/** An offer or a request of this game, and what became of it. */
export type PlayStep = {
  readonly id: string;
  readonly link: string;
  readonly about: string;
  readonly status: string;
  readonly reason?: string;
  readonly learned?: Readonly<Record<string, unknown>>;
  readonly isRevoked?: boolean;
  readonly believedUntil?: Date;
  readonly misbehaviour?: Misbehaviour;
};

type PlaySession = {
  readonly status: string;
  readonly credentials?: readonly { readonly values?: Readonly<Record<string, unknown>> }[];
  readonly report?: readonly { readonly result: string; readonly check: string; readonly reason?: string }[];
  readonly failure?: { readonly code: string; readonly message: string };
};

/** One game: an issuer, a phone and a verifier, and what they did so far. It ends with the window. */
export class Play {
  readonly offers = signal<readonly PlayStep[]>([]);
  readonly requests = signal<readonly PlayStep[]>([]);
  readonly demonstration: Demonstration;
  fresh = 'game';

  constructor(demonstration: Demonstration) {
    this.demonstration = demonstration;
  }

  /** The issuer offers a card. */
  async offer(configurationId: string): Promise<void> {
    const body = { response_type: 'uri', flow: 'pre_authorized_code', credentialConfigurationIds: [configurationId] };
    const made = await ask<{ uri: string; session: string }>(this.demonstration.issuer, 'POST', '/issuer/offer', { body });
    const turn = { id: made.session, link: made.uri, about: configurationId, status: 'active' };
    this.fresh = turn.id;
    this.offers.value = [turn, ...this.offers.value];
  }

  /** The verifier asks its question. */
  async request(requestId: string): Promise<void> {
    const body = { response_type: 'uri', requestId };
    const made = await ask<{ uri: string; session: string }>(this.demonstration.verifier, 'POST', '/verifier/offer', { body });
    const turn = { id: made.session, link: made.uri, about: requestId, status: 'active' };
    this.fresh = turn.id;
    this.requests.value = [turn, ...this.requests.value];
  }

  /** The title of a turn among its like, the oldest first: each has its own. */
  titled(turns: readonly PlayStep[], { id, about }: PlayStep, title: string): string {
    const like = turns.filter((turn) => turn.about === about).reverse();
    const number = like.findIndex((turn) => turn.id === id) + 1;
    return number === 1 ? title : `${title} (${number})`;
  }

  /** The phone reads a link, as if it had scanned the code. */
  scan({ id, link }: PlayStep): Promise<void> {
    return handset.scan(link, async (misbehaviour) => {
      if (misbehaviour !== undefined)
        this.requests.value = this.requests.value.map((request) => (request.id === id ? { ...request, misbehaviour } : request));
      await this.look();
    });
  }

  async revoke({ id }: PlayStep): Promise<void> {
    await ask(this.demonstration.issuer, 'POST', '/session/revoke', { body: { sessionId: id, status: 1 } });
    const believedUntil = await this.#copiesUntil(id);
    this.offers.value = this.offers.value.map((turn) =>
      turn.id === id ? { ...turn, isRevoked: true, ...(believedUntil !== undefined && { believedUntil }) } : turn,
    );
  }

  async #copiesUntil(session: string): Promise<Date | undefined> {
    const { issuer } = this.demonstration;
    const query = { limit: 1 };
    const [entry] = await ask<readonly StatusMatch[]>(issuer, 'GET', `/session/${session}/statuses`, { query });
    if (entry === undefined) return undefined;
    const { expiresAt } = await ask<ListRow>(issuer, 'GET', `/status-lists/${entry.statusListId}`);
    const end = new Date(expiresAt ?? 0);
    return end.getTime() > Date.now() ? end : undefined;
  }

  /** Reads what became of everything that is still open. */
  async look(): Promise<void> {
    const { issuer, verifier } = this.demonstration;
    await Promise.all([refresh(this.offers, issuer), refresh(this.requests, verifier)]);
  }
}

async function refresh(turns: Signal<readonly PlayStep[]>, who: Demonstration['issuer']): Promise<void> {
  const open = turns.value.filter(({ status }) => status === 'active' || status === 'fetched');
  const seen = await Promise.all(open.map(async ({ id }) => [id, await read(who, id)] as const));
  const news = new Map(seen);
  turns.value = turns.value.map((turn) => {
    const now = news.get(turn.id);
    return now === undefined ? turn : { ...turn, ...told(now) };
  });
}

/** Masked while it goes on; what was verified is shown on record, as on every page. */
async function read(who: Demonstration['issuer'], id: string): Promise<PlaySession> {
  const seen = await ask<PlaySession>(who, 'GET', `/session/${id}`, { query: { values: 'masked' } });
  const isVerified = seen.status === 'completed' && seen.credentials !== undefined;
  return isVerified ? ask<PlaySession>(who, 'POST', `/session/${id}/show`) : seen;
}

function told({ status, credentials, report, failure }: PlaySession): Partial<PlayStep> {
  const failed = report?.find(({ result }) => result === 'failed');
  const reason = failed?.reason === undefined ? failure && `${failure.code}: ${failure.message}` : `${failed.check}: ${failed.reason}`;
  const values = credentials?.[0]?.values;
  return { status, ...(reason !== undefined && { reason }), ...(values !== undefined && { learned: values }) };
}
