// SPDX-License-Identifier: Apache-2.0

extension BashCompletion {
    /// The part of the script that is the same whatever the commands are.
    static let functions = #"""
        # Puts the words up to the cursor together again, which bash has cut at : = and @ too: the last is cur.
        __diskcache_words() {
            local rest=${COMP_LINE:0:COMP_POINT} piece spaces i
            words=()
            for ((i = 0; i <= COMP_CWORD; i++)); do
                piece=${COMP_WORDS[i]}
                spaces=${rest%%[![:space:]]*}
                rest=${rest#"$spaces"}
                if ((i == COMP_CWORD)); then piece=$rest; fi
                rest=${rest#"$piece"}
                if [[ -z $spaces && ${#words[@]} -gt 0 ]]; then
                    words[${#words[@]} - 1]+=$piece
                else
                    words+=("$piece")
                fi
            done
            cur=${words[${#words[@]} - 1]}
            unset "words[${#words[@]} - 1]"
        }

        # Reads the words before the cursor: which command, which operand is next, whose value is missing.
        __diskcache_read() {
            local word
            __diskcache_command ''
            for word in "${words[@]:1}"; do
                if [[ -n $wanted ]]; then
                    case $wanted in -d | --dir) directory=$word ;; esac
                    wanted=
                elif [[ -z $ended && $word == -- ]]; then
                    ended=1
                elif [[ -z $ended && $word == -?* ]]; then
                    case $word in
                    --dir=*) directory=${word#*=} ;;
                    -d?*) directory=${word#-d} ;;
                    *) if [[ $valued == *" $word "* ]]; then wanted=$word; fi ;;
                    esac
                elif [[ -z $command ]]; then
                    command=$word ended=
                    __diskcache_command "$command" || return 1
                else
                    operand=$((operand + 1)) ended=${ended:-$stops}
                fi
            done
        }

        # Proposes keys of the cache that begin like $1, quoted; none inside quotes that the user has begun.
        __diskcache_keys() {
            local typed key quoted
            IFS= read typed <<<"$1"
            if [[ $directory == '~/'* ]]; then directory=$HOME/${directory:2}; fi
            while IFS= read -r key; do
                # Behind -- it is no option.
                if [[ -z $ended && $key == -* ]]; then continue; fi
                printf -v quoted %q "$key"
                # Not where the user quotes in another way, which readline would mix with this one.
                if [[ $quoted == "$1"* ]]; then COMPREPLY+=("$lead${quoted#"$cut"}"); fi
            done < <("$program" ${directory:+--dir "$directory"} complete-keys -- "$typed" 2>/dev/null </dev/null)
        }

        # Proposes what is of the kind $1 and begins like $2.
        __diskcache_propose() {
            case $1 in
            files) compopt -o default ;;
            directories) compopt -o dirnames ;;
            command) if ((operand)); then compopt -o default; else mapfile -t COMPREPLY < <(compgen -c -- "$2"); fi ;;
            keys) __diskcache_keys "$2" ;;
            words\ *) mapfile -t COMPREPLY < <(compgen -P "$lead" -W "${1#words }" -- "$2") ;;
            esac
        }

        _diskcache() {
            local IFS=$' \t\n' program=$1 cur cut= lead= breaks command= operand=0 wanted= ended= directory= kind=
            local options valued repeats stops
            local -a words operands
            COMPREPLY=()
            __diskcache_words
            __diskcache_read || return 0
            # What bash leaves in its place, where it has cut the word; with a backslash it has not.
            breaks=${COMP_WORDBREAKS//[!:=@]/}
            if [[ -n $breaks && $cur != *\\[:=@]* ]]; then
                cut=${cur%"${cur##*["$breaks"]}"}
            fi
            if [[ -z $wanted && -z $ended && $cur == --*=* ]]; then
                wanted=${cur%%=*} lead=${cur%%=*}= cur=${cur#*=}
                if [[ $cut == "$lead"* ]]; then cut=${cut#"$lead"} lead=; fi
            fi
            if [[ -n $wanted ]]; then
                __diskcache_value "$command" "$wanted"
            elif [[ -z $ended && $cur == -* ]]; then
                kind="words $options"
            elif ((operand < ${#operands[@]})); then
                kind=${operands[operand]}
            elif [[ -n $repeats || -n $stops ]] && ((${#operands[@]})); then
                kind=${operands[${#operands[@]} - 1]}
            fi
            __diskcache_propose "$kind" "$cur"
        }

        """#
}
