type Members = Readonly<Record<string, unknown>>;

/** A DCQL query (OpenID4VP 1.0 section 6) as one says it, a sentence for each credential. */
export function queryInWords(query: unknown): readonly string[] {
  const { credentials, credential_sets: sets } = membersOf(query);
  const sentences = listOf(credentials).map((credential) => credentialInWords(membersOf(credential)));
  return [...sentences, ...listOf(sets).map((set) => setInWords(membersOf(set)))];
}

function credentialInWords({ id, format, meta, claims, claim_sets, multiple }: Members): string {
  const { vct_values: types, doctype_value: documentType } = membersOf(meta);
  const kinds = listOf(types ?? (documentType === undefined ? [] : [documentType])).map(String);
  const kind = kinds.length === 0 ? String(format) : kinds.join(' or ');
  const named = listOf(claims).map((claim) => claimInWords(membersOf(claim)));
  const what = named.length === 0 ? 'no more than that it is held' : joined(named);
  const several = multiple === true ? ', of every card that fits' : '';
  const chosen = listOf(claim_sets).length > 0 ? ', or a part of them that will do' : '';
  return `Asks for ${what}${chosen} of ${kind}${several} (${String(id)}).`;
}

function claimInWords({ path, values }: Members): string {
  const steps = listOf(path).map((step) => (step === null ? 'each' : String(step).replaceAll('_', ' ')));
  const name = steps.join(' › ');
  const wanted = listOf(values).map(String);
  return wanted.length === 0 ? name : `${name} that is ${wanted.join(' or ')}`;
}

function setInWords({ options, required }: Members): string {
  const ways = listOf(options).map((option) => joined(listOf(option).map(String)));
  const sentence = `${ways.join(', or ')} will do.`;
  return required === false ? `Not required: ${sentence}` : sentence;
}

function joined(words: readonly string[]): string {
  return words.length < 2 ? words.join('') : `${words.slice(0, -1).join(', ')} and ${words.at(-1)}`;
}

const listOf = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : []);

function membersOf(value: unknown): Members {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Members) : {};
}
