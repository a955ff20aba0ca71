import { statSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { describeOptionError } from '../support/option-fault.ts';

/** Values of `--only`, in the order of the page. */
export const TOOLS = ['eudi-dev', '@openid4vc', 'Credo', 'readers', 'Schemathesis'] as const;
export type ToolName = (typeof TOOLS)[number];

export type Options = {
  /** A service that runs; absent: one is started. */
  readonly service?: { readonly address: string; readonly clientId: string; readonly secret: string };
  /** The folder of the tools that were built or installed apart from this project. */
  readonly tools: string | undefined;
  /** These tools alone. */
  readonly only: readonly ToolName[];
  readonly write: boolean;
  /** Schemathesis examples for each operation. */
  readonly examples: number;
};

export const USAGE = `usage: npm run judge -- [--tools <folder>] [--only <tool>]... [--write] [--examples <number>] [--service <url>]
  --tools      where tools of others are (VIDIMUS_JUDGE_TOOLS): the programs eudi-dev and schemathesis
  --only       judge by these alone: ${TOOLS.join(', ')}
  --write      write docs/reference/interoperability.md, by all tools
  --examples   requests of Schemathesis for each operation; 3 unless stated
  --service    judge a service that runs instead of one that is started; the credentials of its root client stand in
               VIDIMUS_JUDGE_CLIENT_ID and VIDIMUS_JUDGE_CLIENT_SECRET. It has to be allowed to call 127.0.0.1
  --help       say this`;

const MAX_EXAMPLES = 1000;
const CLIENT_ID = 'VIDIMUS_JUDGE_CLIENT_ID';
const SECRET = 'VIDIMUS_JUDGE_CLIENT_SECRET';

type Environment = Readonly<Record<string, string | undefined>>;

/** An invalid usage of the command; exit code 2. */
export class UsageFault extends Error {}

/** @returns 'help' for `--help`. @throws UsageFault that names the invalid options. */
export function readOptions(args: readonly string[], environment: Environment): Options | 'help' {
  const values = parse(args);
  if (values.help) return 'help';
  const { only = [], write } = values;
  // A page with only some tools would lose the results of the others.
  if (write && only.length > 0) throw new UsageFault('--write takes all tools, so it goes with no --only');
  const service = parseService(values.service, environment);
  return {
    tools: toolsFolder(values.tools, environment['VIDIMUS_JUDGE_TOOLS']),
    ...{ only: only.map(parseToolName), write, examples: parseExamples(values.examples) },
    ...(service !== undefined && { service }),
  };
}

function parse(args: readonly string[]) {
  try {
    const { values } = parseArgs({
      args: [...args],
      options: {
        service: { type: 'string' },
        tools: { type: 'string' },
        only: { type: 'string', multiple: true },
        write: { type: 'boolean', default: false },
        examples: { type: 'string', default: '3' },
        help: { type: 'boolean', default: false },
      },
    });
    return values;
  } catch (error) {
    throw new UsageFault(describeOptionError(error));
  }
}

function parseToolName(name: string): ToolName {
  const tool = TOOLS.find((candidate) => candidate === name);
  if (tool === undefined) throw new UsageFault(`--only: there is no tool ${name}, but ${TOOLS.join(', ')}`);
  return tool;
}

function parseExamples(text: string): number {
  const examples = Number(text);
  if (Number.isInteger(examples) && examples >= 1 && examples <= MAX_EXAMPLES) return examples;
  throw new UsageFault(`--examples is a number from 1 to ${MAX_EXAMPLES}, not ${text}`);
}

function toolsFolder(option: string | undefined, variable: string | undefined): string | undefined {
  const folder = option ?? variable;
  if (folder === undefined || folder === '') return undefined;
  if (statSync(folder, { throwIfNoEntry: false })?.isDirectory()) return folder;
  const name = option === undefined ? 'VIDIMUS_JUDGE_TOOLS' : '--tools';
  throw new UsageFault(`${name}: there is no folder ${folder}`);
}

function parseService(address: string | undefined, environment: Environment): Options['service'] {
  if (address === undefined) return undefined;
  if (!/^https?:$/.test(URL.parse(address)?.protocol ?? ''))
    throw new UsageFault(`--service: ${address} is no URL, such as https://issuer.example`);
  const { [CLIENT_ID]: clientId, [SECRET]: secret } = environment;
  const missingVariable = clientId === undefined ? CLIENT_ID : SECRET;
  if (clientId === undefined || secret === undefined)
    throw new UsageFault(`--service: ${missingVariable} is not set; it takes the credentials of the root client`);
  return { address: address.replace(/\/+$/, ''), clientId, secret };
}
