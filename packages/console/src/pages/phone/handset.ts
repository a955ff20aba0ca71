import { signal } from '@preact/signals';
import {
  type Exchange,
  type Misbehaviour,
  type Presented,
  type ReadOffer,
  type ReadRequest,
  SimulatedWallet,
  type StoredCredential,
} from '../../../../wallet/src/core/index.ts';
import { kindOf, whatCame } from './link-kind.ts';

export type Incoming = { readonly kind: 'offer'; readonly offer: ReadOffer } | { readonly kind: 'request'; readonly request: ReadRequest };

export type PhoneNote = { readonly tone: 'good' | 'bad'; readonly text: string; readonly detail?: string };

const MOST_LINKS = 200;
const UNREADABLE = 'It may have ended, been used, or be incomplete: copy the whole link, or make another one.';

/** Hears when the phone did something, so that others look what became of it. */
export type Heard = (misbehaviour: Misbehaviour | undefined) => Promise<void>;

/** The phone of this window: its cards and keys end with it. */
export class Handset {
  readonly cards = signal<readonly StoredCredential[]>([]);
  readonly incoming = signal<Incoming | undefined>(undefined);
  readonly note = signal<PhoneNote | undefined>(undefined);
  readonly exchanges = signal<readonly Exchange[]>([]);
  readonly #wallet: SimulatedWallet;
  #heard: Heard = async () => {};
  /** Links of offers that were collected, which are good once. */
  #collected: readonly string[] = [];
  #link = '';

  constructor() {
    this.#wallet = new SimulatedWallet({
      languages: navigator.languages,
      onExchange: (exchange) => {
        this.exchanges.value = [...this.exchanges.value, exchange].slice(-100);
      },
    });
  }

  /** Reads a link, as if it had scanned the code. @param heard what is told when the person has decided. */
  async scan(link: string, heard: Heard = async () => {}): Promise<void> {
    const left = this.incoming.value?.kind;
    this.note.value =
      left === undefined ? undefined : { tone: 'bad', text: `The ${left} before was left unanswered. It is open until it ends.` };
    this.#heard = heard;
    const kind = kindOf(link);
    const refused = this.#collected.includes(link)
      ? 'This phone collected that offer already. An offer is good once: make another one.'
      : kind === undefined
        ? whatCame(link)
        : undefined;
    // What the person looks at is what they gave last.
    if (refused !== undefined) this.incoming.value = undefined;
    if (refused !== undefined) this.#say('bad', refused);
    else
      try {
        this.incoming.value =
          kind === 'offer'
            ? { kind, offer: await this.#wallet.readOffer(link) }
            : { kind: 'request', request: await this.#wallet.readRequest(link) };
        this.#link = link;
      } catch (error) {
        this.incoming.value = undefined;
        this.#say('bad', `The phone cannot use this ${kind}. ${UNREADABLE}`, messageOf(error));
      }
    await heard(undefined);
  }

  /** @param txCode what the issuer told the person by another way. */
  async accept(offer: ReadOffer, txCode?: string): Promise<void> {
    await this.#act(undefined, async () => {
      const { credentials, promised } = await this.#wallet.accept(offer, txCode === undefined ? {} : { txCode });
      this.#collected = [...this.#collected, this.#link].slice(-MOST_LINKS);
      this.cards.value = this.#wallet.credentials;
      const names = credentials.map(({ look }) => look.name).join(', ');
      if (credentials.length > 0) this.#say('good', `${names}: now in this phone.`);
      else this.#say('good', `The issuer promised ${promised.length} for later.`);
    });
  }

  async present(request: ReadRequest, misbehave: Misbehaviour | undefined): Promise<void> {
    await this.#act(misbehave, async () => {
      const answer = await this.#wallet.present(request, misbehave && { misbehave });
      this.#sayAnswer(answer);
    });
  }

  async decline(request: ReadRequest): Promise<void> {
    await this.#act(undefined, async () => {
      await this.#wallet.decline(request);
      this.#say('good', 'Declined: nothing was shown, and the verifier knows that.');
    });
  }

  /** Asks for what was promised. */
  async fetchPromised(): Promise<void> {
    await this.#act(undefined, async () => {
      const come = await this.#wallet.fetchPromised();
      this.cards.value = this.#wallet.credentials;
      this.#say('good', come.length === 0 ? 'Nothing has come yet.' : `${come.length} came.`);
    });
  }

  get hasPromises(): boolean {
    return this.#wallet.promised.length > 0;
  }

  dismiss(): void {
    this.incoming.value = undefined;
    this.#say('good', 'Left. The offer stays open until it ends.');
  }

  async #act(misbehaviour: Misbehaviour | undefined, work: () => Promise<void>): Promise<void> {
    try {
      await work();
    } catch (error) {
      this.#say('bad', messageOf(error));
    }
    this.incoming.value = undefined;
    await this.#heard(misbehaviour);
  }

  #sayAnswer(answer: Presented): void {
    const { status, body } = answer.repeated ?? answer;
    const said = String(body['error_description'] ?? body['error'] ?? '');
    if (status === 200) this.#say('good', 'Shown. The verifier took it.');
    else this.#say('bad', `Refused (${status}): ${said}. Why is told to the verifier alone.`);
  }

  #say(tone: PhoneNote['tone'], text: string, detail?: string): void {
    this.note.value = { tone, text, ...(detail !== undefined && { detail }) };
  }
}

/** The one of this window. */
export const handset = new Handset();

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
