import { type Signal, signal } from '@preact/signals';
import {
  type Exchange,
  type Misbehaviour,
  type Presented,
  type ReadOffer,
  type ReadRequest,
  SimulatedWallet,
  type StoredCredential,
} from '../../../../../../tools/wallet/core/index.ts';
import { ask } from '../../api/call.ts';
import type { Demonstration } from './demonstration.ts';

/** An offer or a request of this game, and what became of it. */
export type Turn = {
  readonly id: string;
  readonly link: string;
  readonly about: string;
  readonly status: string;
  /** Why a verifier refused, in its own words. */
  readonly reason?: string;
  /** What was verified, as the verifier's backend gets it. */
  readonly learned?: Readonly<Record<string, unknown>>;
  readonly isRevoked?: boolean;
  /** What the phone did wrong. */
  readonly misbehaviour?: Misbehaviour;
};

export type Incoming =
  | { readonly kind: 'offer'; readonly offer: ReadOffer; readonly turn: string }
  | { readonly kind: 'request'; readonly request: ReadRequest; readonly turn: string };

/** What a phone says at the end of something. */
export type PhoneNote = { readonly tone: 'good' | 'bad'; readonly text: string };

type Seen = {
  readonly status: string;
  readonly credentials?: readonly { readonly values?: Readonly<Record<string, unknown>> }[];
  readonly report?: readonly { readonly result: string; readonly check: string; readonly reason?: string }[];
  readonly failure?: { readonly code: string; readonly message: string };
};

/** One game: an issuer, a phone and a verifier, and what they did so far. It ends with the window. */
export class Play {
  readonly offers = signal<readonly Turn[]>([]);
  readonly requests = signal<readonly Turn[]>([]);
  readonly cards = signal<readonly StoredCredential[]>([]);
  readonly incoming = signal<Incoming | undefined>(undefined);
  readonly note = signal<PhoneNote | undefined>(undefined);
  readonly exchanges = signal<readonly Exchange[]>([]);
  readonly demonstration: Demonstration;
  readonly #wallet: SimulatedWallet;

  constructor(demonstration: Demonstration) {
    this.demonstration = demonstration;
    this.#wallet = new SimulatedWallet({
      languages: navigator.languages,
      onExchange: (exchange) => {
        this.exchanges.value = [...this.exchanges.value, exchange].slice(-100);
      },
    });
  }

  /** The issuer offers a card. */
  async offer(configurationId: string): Promise<void> {
    const body = {
      response_type: 'uri',
      flow: 'pre_authorized_code',
      credentialConfigurationIds: [configurationId],
    };
    const made = await ask<{ uri: string; session: string }>(
      this.demonstration.issuer,
      'POST',
      '/issuer/offer',
      { body },
    );
    const turn = { id: made.session, link: made.uri, about: configurationId, status: 'active' };
    this.offers.value = [turn, ...this.offers.value];
  }

  /** The verifier asks its question. */
  async request(requestId: string): Promise<void> {
    const body = { response_type: 'uri', requestId };
    const made = await ask<{ uri: string; session: string }>(
      this.demonstration.verifier,
      'POST',
      '/verifier/offer',
      { body },
    );
    const turn = { id: made.session, link: made.uri, about: requestId, status: 'active' };
    this.requests.value = [turn, ...this.requests.value];
  }

  /** The phone reads a link, as if it had scanned the code. */
  async scan({ id, link }: Turn): Promise<void> {
    this.note.value = undefined;
    try {
      this.incoming.value = this.offers.value.some((turn) => turn.id === id)
        ? { kind: 'offer', offer: await this.#wallet.readOffer(link), turn: id }
        : { kind: 'request', request: await this.#wallet.readRequest(link), turn: id };
    } catch (error) {
      this.#say('bad', `The phone cannot use this: ${messageOf(error)}`);
    }
    await this.look();
  }

  async accept(offer: ReadOffer): Promise<void> {
    await this.#act(async () => {
      const { credentials } = await this.#wallet.accept(offer);
      this.cards.value = this.#wallet.credentials;
      this.#say('good', `${credentials.map(({ look }) => look.name).join(', ')}: now in this phone.`);
    });
  }

  /** @param withheld places of the claims that the person does not want to show. */
  async present(request: ReadRequest, misbehave: Misbehaviour | undefined): Promise<void> {
    const turn = this.incoming.value?.turn;
    await this.#act(async () => {
      const answer = await this.#wallet.present(request, misbehave && { misbehave });
      this.requests.value = this.requests.value.map((one) =>
        one.id === turn && misbehave !== undefined ? { ...one, misbehaviour: misbehave } : one,
      );
      this.#sayAnswer(answer, misbehave);
    });
  }

  async decline(request: ReadRequest): Promise<void> {
    await this.#act(async () => {
      await this.#wallet.decline(request);
      this.#say('good', 'Declined: nothing was shown, and the verifier knows that.');
    });
  }

  /** Who does not want an offer just leaves it. */
  dismiss(): void {
    this.incoming.value = undefined;
    this.#say('good', 'Left. The offer stays open until it ends.');
  }

  async revoke({ id }: Turn): Promise<void> {
    await ask(this.demonstration.issuer, 'POST', '/session/revoke', { body: { sessionId: id, status: 1 } });
    this.offers.value = this.offers.value.map((turn) =>
      turn.id === id ? { ...turn, isRevoked: true } : turn,
    );
  }

  /** Reads what became of everything that is still open. */
  async look(): Promise<void> {
    const { issuer, verifier } = this.demonstration;
    await Promise.all([refresh(this.offers, issuer), refresh(this.requests, verifier)]);
  }

  async #act(work: () => Promise<void>): Promise<void> {
    try {
      await work();
    } catch (error) {
      this.#say('bad', messageOf(error));
    }
    this.incoming.value = undefined;
    await this.look();
  }

  #sayAnswer(answer: Presented, misbehave: Misbehaviour | undefined): void {
    const { status, body } = answer.repeated ?? answer;
    const said = String(body['error_description'] ?? body['error'] ?? '');
    if (misbehave === 'decline')
      this.#say('good', 'Declined: nothing was shown, and the verifier knows that.');
    else if (status === 200) this.#say('good', 'Shown. The verifier took it.');
    else this.#say('bad', `Refused (${status}). ${said}`);
  }

  #say(tone: PhoneNote['tone'], text: string): void {
    this.note.value = { tone, text };
  }
}

async function refresh(turns: Signal<readonly Turn[]>, who: Demonstration['issuer']): Promise<void> {
  const open = turns.value.filter(({ status }) => status === 'active' || status === 'fetched');
  const seen = await Promise.all(
    open.map(async ({ id }) => [id, await ask<Seen>(who, 'GET', `/session/${id}`)] as const),
  );
  const news = new Map(seen);
  turns.value = turns.value.map((turn) => {
    const now = news.get(turn.id);
    return now === undefined ? turn : { ...turn, ...told(now) };
  });
}

function told({ status, credentials, report, failure }: Seen): Partial<Turn> {
  const failed = report?.find(({ result }) => result === 'failed');
  const reason =
    failed?.reason === undefined
      ? failure && `${failure.code}: ${failure.message}`
      : `${failed.check}: ${failed.reason}`;
  const values = credentials?.[0]?.values;
  return {
    status,
    ...(reason !== undefined && { reason }),
    ...(values !== undefined && { learned: values }),
  };
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
