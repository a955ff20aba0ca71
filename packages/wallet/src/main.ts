import { createInterface } from 'node:readline/promises';
import { setTimeout as wait } from 'node:timers/promises';
import { readCards, writeCards } from './card-file.ts';
import { agreeOnPage, ReturnAddress } from './consent.ts';
import {
  type Exchange,
  type Fetch,
  listening,
  MISBEHAVIOURS,
  type Presented,
  type ReadOffer,
  type Received,
  SimulatedWallet,
  type StoredCredential,
} from './core/index.ts';
import { readLink } from './link.ts';
import { type Options, readOptions, USAGE, UsageError } from './options.ts';
import { cardInWords, errorInWords, exchangeInWords, offerInWords, plain, requestInWords } from './words.ts';

const PATIENCE_MS = 300_000;
const MOST_SECONDS_BETWEEN = 30;

/** `npm run wallet`: collects or shows cards, and ends with 0, 1 or 2. */
async function main(args: readonly string[]): Promise<number> {
  try {
    const options = readOptions(args);
    if (options === 'help') {
      console.log(USAGE);
      return 0;
    }
    const onExchange = (one: Exchange) => {
      if (options.isTracing) console.error(exchangeInWords(one));
    };
    const browse = listening(fetch, onExchange);
    const { kind, uri } = await readLink(options.link, browse);
    if (kind === 'offer' && options.misbehave !== undefined) throw new UsageError('--misbehave is for requests, and this is an offer');
    const cards = await readCards(options.cards);
    const wallet = new SimulatedWallet({
      credentials: cards,
      exportableKeys: true,
      onExchange,
    });
    return kind === 'offer' ? await collect(wallet, uri, options, browse) : await answer(wallet, uri, options);
  } catch (error) {
    console.error(errorInWords(error));
    return error instanceof UsageError ? 2 : 1;
  }
}

async function collect(wallet: SimulatedWallet, uri: string, options: Options, browse: Fetch): Promise<number> {
  const offer = await wallet.readOffer(uri);
  console.log(offerInWords(offer));
  const txCode = options.txCode ?? (await askedCode(offer));
  if (!(await agrees('Collect it?', options))) {
    console.log('Nothing was collected. The issuer is not told; its offer ends by itself.');
    return 0;
  }
  const received = await accept(wallet, offer, options, browse, txCode);
  await keep(received.credentials, options);
  const later = received.promised.length > 0 ? await promised(wallet, received, options) : [];
  return received.credentials.length + later.length > 0 ? 0 : 1;
}

async function keep(received: readonly StoredCredential[], { cards }: Options): Promise<void> {
  if (received.length === 0) return;
  // The newest first, so that it is the one that answers; read again, since another wallet may have written meanwhile.
  await writeCards(cards, [...received.toReversed(), ...(await readCards(cards))]);
  for (const card of received) console.log(`\n${cardInWords(card)}`);
  console.log(`\nKept with its key in ${cards}`);
}

async function accept(
  wallet: SimulatedWallet,
  offer: ReadOffer,
  { isAgreed }: Options,
  browse: Fetch,
  txCode: string | undefined,
): Promise<Received> {
  if (offer.grant === 'pre_authorized_code') return wallet.accept(offer, txCode === undefined ? {} : { txCode });
  if (isAgreed) {
    const authorization = await wallet.authorize(offer);
    return authorization.complete(await agreeOnPage(authorization.url, browse));
  }
  const back = await ReturnAddress.open();
  try {
    const authorization = await wallet.authorize(offer, back.url);
    console.log(`Open this in a browser on this machine, and approve:\n\n  ${plain(new URL(authorization.url).href)}\n`);
    return await authorization.complete(await back.returned);
  } finally {
    back.close();
  }
}

async function promised(wallet: SimulatedWallet, { promised: first }: Received, options: Options): Promise<readonly StoredCredential[]> {
  const seconds = Math.min(Math.max(...first.map(({ interval }) => interval), 1), MOST_SECONDS_BETWEEN);
  console.log(`The issuer makes it later; asking every ${seconds} seconds, for five minutes at most …`);
  const end = Date.now() + PATIENCE_MS;
  const received: StoredCredential[] = [];
  while (wallet.promised.length > 0 && Date.now() < end) {
    await wait(seconds * 1000);
    const came = await wallet.fetchPromised();
    await keep(came, options);
    received.push(...came);
  }
  if (wallet.promised.length > 0) console.error('It is still not ready. Ask the issuer for a new offer.');
  return received;
}

async function answer(wallet: SimulatedWallet, uri: string, options: Options): Promise<number> {
  const request = await wallet.readRequest(uri);
  console.log(requestInWords(request));
  const { misbehave } = options;
  if (!request.canBeAnswered && misbehave !== 'decline') {
    console.error(`No card in ${options.cards} answers it: collect one by an offer first.`);
    return 1;
  }
  if (misbehave !== undefined) console.log(`Misbehaving: ${MISBEHAVIOURS[misbehave].about}`);
  if (!(await agrees('Answer it?', options))) {
    const { status } = await wallet.decline(request);
    console.log(`Declined; the verifier was told, and answered ${status}.`);
    return status < 400 ? 0 : 1;
  }
  const presented = await wallet.present(request, misbehave === undefined ? {} : { misbehave });
  return outcomeOf(presented, misbehave);
}

function outcomeOf(presented: Presented, misbehave: Options['misbehave']): number {
  const last = presented.repeated ?? presented;
  const isTaken = last.status < 400;
  const said = `${last.status} ${plain(JSON.stringify(last.body))}`;
  if (misbehave === undefined || misbehave === 'decline') {
    console.log(isTaken ? `Taken: ${said}` : `Refused: ${said}`);
    if (presented.redirectUri !== undefined) console.log(`The browser goes to ${plain(presented.redirectUri)}`);
    return isTaken ? 0 : 1;
  }
  if (presented.repeated !== undefined) console.log(`The first answer was answered by ${presented.status}.`);
  console.log(isTaken ? `Taken, which it should not be: ${said}` : `Refused, as it should be: ${said}`);
  return isTaken ? 1 : 0;
}

async function askedCode({ txCode }: ReadOffer): Promise<string | undefined> {
  if (txCode === undefined) return undefined;
  if (!process.stdin.isTTY) throw new UsageError('the offer wants a transaction code: give it by --tx-code');
  return (await question('Transaction code: ')).trim();
}

async function agrees(what: string, { isAgreed }: Options): Promise<boolean> {
  if (isAgreed) return true;
  if (!process.stdin.isTTY) throw new UsageError('there is no terminal to ask on: agree by --yes');
  return /^y(es)?$/i.test((await question(`${what} [y/N] `)).trim());
}

async function question(text: string): Promise<string> {
  const terminal = createInterface({ input: process.stdin, output: process.stdout });
  try {
    return await terminal.question(text);
  } finally {
    terminal.close();
  }
}

process.exitCode = await main(process.argv.slice(2));
