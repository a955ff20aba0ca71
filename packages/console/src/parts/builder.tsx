import type { ComponentChildren } from 'preact';
import { ApiFailure } from '../api/call.ts';
import { linkTo } from '../shell/place.ts';
import { Confirm } from './confirm.tsx';
import { JsonEditor } from './json-editor.tsx';
import { Problem } from './problem.tsx';
import { type Draft, notes } from './use-draft.ts';

type Props = {
  readonly draft: Draft;
  readonly title: string;
  /** The list that it stands in. */
  readonly list: { readonly page: string; readonly title: string };
  readonly mayWrite: boolean;
  readonly actions: ComponentChildren;
  readonly children: ComponentChildren;
  readonly beside: ComponentChildren;
};

/** A form, and beside it what comes of it and the JSON that says the same. */
export function Builder({ draft, title, list, mayWrite, actions, children, beside }: Props) {
  const { fault, told, isBusy, isNew, isChanged, isRead } = draft;
  const isConflict = fault instanceof ApiFailure && fault.status === 409 && isRead && !isNew;
  return (
    <>
      <p class="fine">
        <a href={linkTo(list.page)}>{list.title}</a>
      </p>
      <h1>{title}</h1>
      <div class="doings">
        {mayWrite && (
          <button type="button" aria-busy={isBusy} disabled={isBusy || !isRead || !isChanged} onClick={draft.save}>
            {isNew ? 'Make it' : 'Save'}
          </button>
        )}
        {!isNew && actions}
        {!isNew && mayWrite && (
          <Confirm label="Delete" title={`Delete ${title}?`} isGrave act={draft.remove}>
            <p>Nothing can be made with it any more. That cannot be undone.</p>
          </Confirm>
        )}
      </div>
      {fault !== undefined && <Problem fault={fault} />}
      {isConflict && (
        <p>
          If somebody else saved meanwhile, nothing of theirs was overwritten. Copy what you want to keep from the JSON, then{' '}
          <button type="button" class="quiet" onClick={draft.readAgain}>
            read it again
          </button>
        </p>
      )}
      {fault === undefined && told.length > 0 && (
        <section class="warnings" aria-label="Notes">
          <p>Saved, with {notes(told.length)}:</p>
          <ul>
            {told.map(({ path, message }) => (
              <li key={`${path} ${message}`}>
                {path !== '' && <code>{path}</code>} {message}
              </li>
            ))}
          </ul>
        </section>
      )}
      {!isRead && fault === undefined && <p aria-busy="true">Reading</p>}
      {isRead && (
        <div class="builder">
          <div>{children}</div>
          <div>
            {beside}
            <section class="card" aria-labelledby="as-json">
              <h2 id="as-json">As JSON</h2>
              <JsonEditor label="Configuration" value={draft.value} onChange={draft.replace} />
            </section>
          </div>
        </div>
      )}
    </>
  );
}
