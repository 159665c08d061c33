/** The same handlers for worker threads, which share the journal of their process by its name. */
import { register } from 'tsx/esm/api';

register();
const { handlersOf } = await import('./handlers.ts');
const { Journal } = await import('./journal.ts');

export default handlersOf(new Journal(process.env.FAULTS_JOURNAL).note);
