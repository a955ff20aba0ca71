import { meaningOf } from '../sessions/causes.ts';
import { cureOf } from '../sessions/cures.ts';
import { inWords } from './question.ts';
import { namesOf, type Trial, type TriedPresentation, type TriedQuery } from './trial.ts';

const FORMATS: Readonly<Record<string, string>> = { 'dc+sd-jwt': 'an SD-JWT VC', mso_mdoc: 'an mdoc' };

export function TrialView({ trial: { presentations, missing, untried } }: { readonly trial: Trial }) {
  return (
    <>
      {presentations.map((presentation, index) => (
        <Tried key={index} presentation={presentation} />
      ))}
      {missing.length > 0 && <p>The question as a whole would still lack {inWords(missing)}.</p>}
      <p class="fine">
        Not looked at, since it takes a request and the wallet that answers it: {inWords(untried)}. A copy in wrong hands would do as well
        here.
      </p>
    </>
  );
}

function Tried({ presentation }: { readonly presentation: TriedPresentation }) {
  const { format, types, shown, queries } = presentation;
  return (
    <>
      {queries.length === 0 && (
        <p>
          <strong>It answers nothing.</strong> It is {FORMATS[format] ?? format}, and the question asks for none.
        </p>
      )}
      {queries.map((query) => (
        <Answer key={query.id} query={query} />
      ))}
      <p class="fine">
        {types.length > 0 && `Its type is ${inWords(types)}. `}
        {shown !== undefined && shown.length > 0 && `It holds ${inWords(namesOf(shown))}.`}
      </p>
    </>
  );
}

function Answer({ query: { id, result, reason, missing, report } }: { readonly query: TriedQuery }) {
  const cure = reason === undefined ? undefined : cureOf(reason);
  return (
    <>
      <p>
        {result === 'passed' ? (
          <strong>It would answer “{id}”.</strong>
        ) : (
          <>
            <strong>It would not answer “{id}”:</strong> {meaningOf(reason ?? '')} (<code>{reason}</code>).
          </>
        )}
        {missing.length > 0 && ` Missing: ${inWords(namesOf(missing))}.`}
      </p>
      {cure?.at !== undefined && <p>{cure.what}</p>}
      <ul class="checks" aria-label={`Checks for ${id}`}>
        {report.map(({ check, result: came, section, input, detail }) => (
          <li key={check}>
            <details>
              <summary class={came}>
                <span aria-hidden="true">{came === 'passed' ? '✓' : '✗'}</span> {check} <span class="fine">{came}</span>
              </summary>
              <dl class="facts">
                <dt>Expected by</dt>
                <dd>{section}</dd>
                {input !== undefined && <dt>Came</dt>}
                {input !== undefined && <dd>{input}</dd>}
                {detail !== undefined && <dt>In detail</dt>}
                {detail !== undefined && <dd>{detail}</dd>}
              </dl>
            </details>
          </li>
        ))}
      </ul>
    </>
  );
}
