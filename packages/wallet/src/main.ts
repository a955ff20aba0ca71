import { createInterface } from 'node:readline/promises';
import { setTimeout as wait } from 'node:timers/promises';
import { readCards, writeCards } from './card-file.ts';
import { approveOnPage, ReturnAddress } from './consent.ts';
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
import { cardInWords, errorInWords, exchangeInWords, offerInWords, plain, requestInWords } from './messages.ts';
import { type Options, readOptions, USAGE, UsageError } from './options.ts';

const PATIENCE_MS = 300_000;
const MOST_SECONDS_BETWEEN = 30;

/** `npm run wallet`: collects or presents credentials, and exits with 0, 1 or 2. */
async function main(args: readonly string[]): Promise<number> {
  try {
    const options = readOptions(args);
    if (options === 'help') {
      console.log(USAGE);
      return 0;
    }
    const onExchange = (exchange: Exchange) => {
      if (options.isTracing) console.error(exchangeInWords(exchange));
    };
    const browserFetch = listening(fetch, onExchange);
    const { kind, uri } = await readLink(options.link, browserFetch);
    if (kind === 'offer' && options.misbehave !== undefined) throw new UsageError('--misbehave is for requests, and this is an offer');
    const cards = await readCards(options.credentialsFile);
    const wallet = new SimulatedWallet({ credentials: cards, exportableKeys: true, onExchange });
    return kind === 'offer' ? await collect(wallet, uri, options, browserFetch) : await answer(wallet, uri, options);
  } catch (error) {
    console.error(errorInWords(error));
    return error instanceof UsageError ? 2 : 1;
  }
}

async function collect(wallet: SimulatedWallet, uri: string, options: Options, browse: Fetch): Promise<number> {
  const offer = await wallet.readOffer(uri);
  console.log(offerInWords(offer));
  const txCode = options.txCode ?? (await promptForCode(offer));
  if (!(await confirm('Collect it?', options))) {
    console.log('Nothing was accepted. The issuer is not notified; its offer expires.');
    return 0;
  }
  const received = await accept(wallet, offer, options, browse, txCode);
  await keep(received.credentials, options);
  const later = received.promised.length > 0 ? await fetchDeferred(wallet, received, options) : [];
  return received.credentials.length + later.length > 0 ? 0 : 1;
}

async function keep(received: readonly StoredCredential[], { credentialsFile }: Options): Promise<void> {
  if (received.length === 0) return;
  // The newest credential comes first, so that it is selected; the file is read again, because another wallet may have written meanwhile.
  await writeCards(credentialsFile, [...received.toReversed(), ...(await readCards(credentialsFile))]);
  for (const card of received) console.log(`\n${cardInWords(card)}`);
  console.log(`\nStored with its key in ${credentialsFile}`);
}

async function accept(
  wallet: SimulatedWallet,
  offer: ReadOffer,
  { consentsWithoutPrompt }: Options,
  browse: Fetch,
  txCode: string | undefined,
): Promise<Received> {
  if (offer.grant === 'pre_authorized_code') return wallet.accept(offer, txCode === undefined ? {} : { txCode });
  if (consentsWithoutPrompt) {
    const authorization = await wallet.authorize(offer);
    return authorization.complete(await approveOnPage(authorization.url, browse));
  }
  const returnAddress = await ReturnAddress.open();
  try {
    const authorization = await wallet.authorize(offer, returnAddress.url);
    console.log(`Open this in a browser on this machine, and approve:\n\n  ${plain(new URL(authorization.url).href)}\n`);
    return await authorization.complete(await returnAddress.returned);
  } finally {
    returnAddress.close();
  }
}

async function fetchDeferred(
  wallet: SimulatedWallet,
  { promised: deferred }: Received,
  options: Options,
): Promise<readonly StoredCredential[]> {
  const seconds = Math.min(Math.max(...deferred.map(({ interval }) => interval), 1), MOST_SECONDS_BETWEEN);
  console.log(`The credential is deferred; polling every ${seconds} seconds, for at most five minutes …`);
  const end = Date.now() + PATIENCE_MS;
  const received: StoredCredential[] = [];
  while (wallet.promised.length > 0 && Date.now() < end) {
    await wait(seconds * 1000);
    const newCredentials = await wallet.fetchPromised();
    await keep(newCredentials, options);
    received.push(...newCredentials);
  }
  if (wallet.promised.length > 0) console.error('It is not ready yet. Request a new offer from the issuer.');
  return received;
}

async function answer(wallet: SimulatedWallet, uri: string, options: Options): Promise<number> {
  const request = await wallet.readRequest(uri);
  console.log(requestInWords(request));
  const { misbehave } = options;
  if (!request.canBeAnswered && misbehave !== 'decline') {
    console.error(`No credential in ${options.credentialsFile} matches: accept an offer first.`);
    return 1;
  }
  if (misbehave !== undefined) console.log(`Misbehaving: ${MISBEHAVIOURS[misbehave].about}`);
  if (!(await confirm('Answer it?', options))) {
    const { status } = await wallet.decline(request);
    console.log(`Declined; the verifier was notified and answered ${status}.`);
    return status < 400 ? 0 : 1;
  }
  const presented = await wallet.present(request, misbehave === undefined ? {} : { misbehave });
  return outcomeOf(presented, misbehave);
}

function outcomeOf(presented: Presented, misbehave: Options['misbehave']): number {
  const result = presented.repeated ?? presented;
  const isTaken = result.status < 400;
  const summary = `${result.status} ${plain(JSON.stringify(result.body))}`;
  if (misbehave === undefined || misbehave === 'decline') {
    console.log(isTaken ? `Taken: ${summary}` : `Refused: ${summary}`);
    if (presented.redirectUri !== undefined) console.log(`The browser is redirected to ${plain(presented.redirectUri)}`);
    return isTaken ? 0 : 1;
  }
  if (presented.repeated !== undefined) console.log(`The verifier answered the first response with ${presented.status}.`);
  console.log(isTaken ? `Accepted, which is wrong: ${summary}` : `Rejected, as expected: ${summary}`);
  return isTaken ? 1 : 0;
}

async function promptForCode({ txCode }: ReadOffer): Promise<string | undefined> {
  if (txCode === undefined) return undefined;
  if (!process.stdin.isTTY) throw new UsageError('the offer requires a transaction code: pass it by --tx-code');
  return (await promptUser('Transaction code: ')).trim();
}

async function confirm(what: string, { consentsWithoutPrompt }: Options): Promise<boolean> {
  if (consentsWithoutPrompt) return true;
  if (!process.stdin.isTTY) throw new UsageError('there is no terminal for the consent prompt: use --yes');
  return /^y(es)?$/i.test((await promptUser(`${what} [y/N] `)).trim());
}

async function promptUser(text: string): Promise<string> {
  const terminal = createInterface({ input: process.stdin, output: process.stdout });
  try {
    return await terminal.question(text);
  } finally {
    terminal.close();
  }
}

process.exitCode = await main(process.argv.slice(2));
